/** The microphone: asked for, opened, changed, and lost. */

import type { CapturedFrame } from "./capture";
import type { CaptureOptions } from "./worklets";
import { type Device, type Devices, MicrophoneError, type MicrophoneProblem, type MicrophoneState } from "./events";
import { canChooseOutput, type Sound } from "./sound";
import { MICROPHONE_HZ } from "./wire";

const SENTENCES: Readonly<Record<MicrophoneProblem, string>> = {
  insecure: "This page is not served over HTTPS, so the browser does not let it use the microphone. You can type instead.",
  denied: "Microphone access is blocked. Allow it for this page in your browser's settings, or type instead.",
  missing: "No microphone was found. Plug one in, or type instead.",
  busy: "The microphone could not be opened. Another program may be using it: close that program and try again, or type instead.",
  unsupported: "This browser cannot record audio. You can type instead.",
};

/** The system's default under other names, which browsers list beside the devices. */
const ALIASES: ReadonlySet<string> = new Set(["", "default", "communications"]);

export interface MicrophoneHooks {
  frame(frame: CapturedFrame): void;
  changed(now: MicrophoneState): void;
}

export interface Microphone {
  readonly isOpen: boolean;
  /** Rejects with a `MicrophoneError`. Does nothing if it is open. */
  open(): Promise<void>;
  close(): void;
  mute(muted: boolean): void;
  /** Changes at once if it is open. "" is the system's default. */
  choose(id: string): Promise<void>;
}

interface Line {
  stream: MediaStream;
  source: MediaStreamAudioSourceNode;
  node: AudioWorkletNode;
}

export function createMicrophone(sound: Sound, hooks: MicrophoneHooks): Microphone {
  let line: Line | null = null;
  let opening: Promise<void> | null = null;
  let device = "";
  let isMuted = false;
  /** Counts closings: what is opened for an earlier one is closed again. */
  let generation = 0;

  async function connect(): Promise<Line> {
    // At once, as long as it is still the person's click.
    const context = sound.open();
    context.catch(() => undefined);
    const stream = await ask(device);
    try {
      const source = new MediaStreamAudioSourceNode(await context, { mediaStream: stream });
      const processorOptions: CaptureOptions = { toHz: MICROPHONE_HZ };
      const node = new AudioWorkletNode(source.context, "antiphon-capture", { processorOptions });
      node.port.onmessage = (event: MessageEvent<CapturedFrame>) => hooks.frame(event.data);
      // It gives silence. A node that leads nowhere is not run at all in some browsers.
      source.connect(node).connect(source.context.destination);
      return { stream, source, node };
    } catch {
      stop(stream);
      throw problem("unsupported");
    }
  }

  async function open(): Promise<void> {
    const wanted = generation;
    hooks.changed({ state: "asking" });
    try {
      const made = await connect();
      if (wanted !== generation) {
        hangUp(made);
        return;
      }
      take(made);
    } catch (error) {
      if (wanted !== generation) return;
      fail(error);
      throw error;
    }
  }

  function take(made: Line): void {
    if (line !== null) hangUp(line);
    line = made;
    const track = made.stream.getAudioTracks()[0];
    // Pulled out. There may be another one.
    if (track !== undefined) track.onended = () => void replace().catch(() => undefined);
    report();
  }

  async function replace(): Promise<void> {
    if (line !== null) hangUp(line);
    line = null;
    device = "";
    await open();
  }

  function report(): void {
    if (line === null) return;
    hooks.changed({ state: "on", muted: isMuted, label: line.stream.getAudioTracks()[0]?.label ?? "" });
  }

  function fail(error: unknown): void {
    const known = error instanceof MicrophoneError ? error : problem("unsupported");
    hooks.changed({ state: "failed", error: known });
  }

  return {
    get isOpen() {
      return line !== null;
    },
    async open() {
      if (line !== null) return;
      opening ??= open().finally(() => (opening = null));
      await opening;
    },
    close() {
      generation += 1;
      opening = null;
      if (line !== null) hangUp(line);
      line = null;
      hooks.changed({ state: "off" });
    },
    mute(muted) {
      isMuted = muted;
      report();
    },
    async choose(id) {
      const before = device;
      device = id;
      if (line === null || id === before) return;
      const wanted = generation;
      try {
        const made = await connect();
        if (wanted === generation) take(made);
        else hangUp(made);
      } catch (error) {
        device = before;
        throw error;
      }
    },
  };
}

export async function listDevices(): Promise<Devices> {
  // There is none on a page without https.
  const all = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
  const of = (kind: MediaDeviceKind): Device[] =>
    all
      .filter((each) => each.kind === kind && !ALIASES.has(each.deviceId))
      .map((each) => ({ id: each.deviceId, label: each.label }));
  return { inputs: of("audioinput"), outputs: canChooseOutput() ? of("audiooutput") : [] };
}

async function ask(device: string): Promise<MediaStream> {
  if (!isSecureContext) throw problem("insecure");
  if (navigator.mediaDevices?.getUserMedia === undefined) throw problem("unsupported");
  try {
    return await navigator.mediaDevices.getUserMedia({
      audio: {
        echoCancellation: true,
        noiseSuppression: true,
        autoGainControl: true,
        channelCount: { ideal: 1 },
        // Not exact: a device that was remembered may be gone, and then any other will do.
        ...(device === "" ? {} : { deviceId: { ideal: device } }),
      },
    });
  } catch (error) {
    throw problem(problemOf(error));
  }
}

/** What the browser means by the name of its error. */
function problemOf(error: unknown): MicrophoneProblem {
  const name = error instanceof Error || error instanceof DOMException ? error.name : "";
  if (name === "NotAllowedError" || name === "SecurityError") return "denied";
  if (name === "NotFoundError" || name === "OverconstrainedError") return "missing";
  return "busy";
}

function problem(code: MicrophoneProblem): MicrophoneError {
  return new MicrophoneError(code, SENTENCES[code]);
}

function hangUp(line: Line): void {
  line.source.disconnect();
  line.node.disconnect();
  line.node.port.onmessage = null;
  line.node.port.postMessage("end");
  stop(line.stream);
}

function stop(stream: MediaStream): void {
  for (const track of stream.getTracks()) {
    track.onended = null;
    track.stop();
  }
}
