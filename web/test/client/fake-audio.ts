/** A fake of the browser's audio, controlled by the test. */

import { vi } from "vitest";

type Port = { onmessage: ((event: { data: unknown }) => void) | null; postMessage: (message: unknown) => void };

export class FakeNode {
  static all: FakeNode[] = [];
  static named(name: string): FakeNode {
    return FakeNode.all.findLast((node) => node.name === name)!;
  }

  readonly told: unknown[] = [];
  readonly port: Port = { onmessage: null, postMessage: (message) => this.told.push(message) };
  readonly gain = { value: 1, setTargetAtTime: (value: number) => (this.gain.value = value) };

  constructor(
    readonly context: FakeContext,
    readonly name: unknown = "",
  ) {
    FakeNode.all.push(this);
  }

  connect(next: FakeNode): FakeNode {
    return next;
  }
  disconnect(): void {}

  /** Acts as if the processor had posted this. */
  post(data: unknown): void {
    this.port.onmessage?.({ data });
  }
}

export class FakeContext {
  static last: FakeContext;
  static startsAs: "running" | "suspended" = "running";
  state: string = FakeContext.startsAs;
  readonly destination = {};
  readonly currentTime = 0;
  readonly outputLatency = 0.02;
  sinkId = "";
  onstatechange: (() => void) | null = null;

  constructor() {
    FakeContext.last = this;
  }

  get audioWorklet(): { addModule: (url: URL) => Promise<void> } {
    return { addModule: () => Promise.resolve() };
  }
  become(state: string): void {
    this.state = state;
    this.onstatechange?.();
  }
  async resume(): Promise<void> {
    if (FakeContext.startsAs === "running") this.become("running");
  }
  async suspend(): Promise<void> {
    this.become("suspended");
  }
  async close(): Promise<void> {
    this.state = "closed";
  }
  async setSinkId(id: string): Promise<void> {
    this.sinkId = id;
  }
}

export class FakeTrack {
  onended: (() => void) | null = null;
  isStopped = false;
  constructor(readonly label: string) {}
  stop(): void {
    this.isStopped = true;
  }
}

export class FakeDevices extends EventTarget {
  readonly asked: MediaTrackConstraints[] = [];
  readonly tracks: FakeTrack[] = [];
  refusal: Error | null = null;
  listed: Partial<MediaDeviceInfo>[] = [];

  async getUserMedia({ audio }: { audio: MediaTrackConstraints }): Promise<unknown> {
    this.asked.push(audio);
    if (this.refusal !== null) throw this.refusal;
    const track = new FakeTrack(`Microphone ${this.asked.length}`);
    this.tracks.push(track);
    return { getTracks: () => [track], getAudioTracks: () => [track] };
  }
  async enumerateDevices(): Promise<Partial<MediaDeviceInfo>[]> {
    return this.listed;
  }
}

/** Replaces the real audio; `vi.unstubAllGlobals` restores it. */
export function stubAudio(): FakeDevices {
  const devices = new FakeDevices();
  FakeNode.all = [];
  FakeContext.startsAs = "running";
  vi.stubGlobal("isSecureContext", true);
  vi.stubGlobal("AudioContext", FakeContext);
  vi.stubGlobal("AudioWorkletNode", FakeNode);
  vi.stubGlobal("GainNode", FakeNode);
  vi.stubGlobal("MediaStreamAudioSourceNode", FakeNode);
  Object.defineProperty(navigator, "mediaDevices", { value: devices, configurable: true });
  return devices;
}
