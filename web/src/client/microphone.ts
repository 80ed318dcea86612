/** Opens, changes and closes the microphone, and notices when it is lost. */

import type { CapturedFrame } from "./capture";
import type { CaptureOptions } from "./worklets";
import { type Device, type Devices, MicrophoneError, type MicrophoneProblem, type MicrophoneState } from "./events";
import { canChooseOutput, type Sound } from "./sound";
import { MICROPHONE_HZ } from "./wire";

const MESSAGES: Readonly<Record<MicrophoneProblem, string>> = {
  insecure: "This page is not served over HTTPS, so the browser does not let it use the microphone. You can type instead.",
  denied: "Microphone access is blocked. Allow it for this page in your browser's settings, or type instead.",
  missing: "No microphone was found. Plug one in, or type instead.",
  busy: "The microphone could not be opened. Another program may be using it: close that program and try again, or type instead.",
  unsupported: "This browser cannot record audio. You can type instead.",
};

/** Browsers list the system's default under these ids, in addition to the device itself. */
const DEFAULT_DEVICE_IDS: ReadonlySet<string> = new Set(["", "default", "communications"]);

export interface MicrophoneHooks {
  frame(frame: CapturedFrame): void;
  changed(now: MicrophoneState): void;
}

export interface Microphone {
  readonly isOpen: boolean;
  /** Does nothing if it is open. Rejects with a `MicrophoneError`. */
  open(): Promise<void>;
  close(): void;
  mute(muted: boolean): void;
  /** Selects a device; "" is the system's default. Takes effect at once if the microphone is open. */
  choose(id: string): Promise<void>;
}

interface Input {
  stream: MediaStream;
  source: MediaStreamAudioSourceNode;
  node: AudioWorkletNode;
}

export function createMicrophone(sound: Sound, hooks: MicrophoneHooks): Microphone {
  let input: Input | null = null;
  let opening: Promise<void> | null = null;
  let device = "";
  let isMuted = false;
  /** Counts how often it was closed. An input that was requested before the last close is released again. */
  let generation = 0;

  async function openInput(): Promise<Input> {
    // Before the first await, so that it still counts as part of the user's click.
    const context = sound.open();
    context.catch(() => undefined);
    const stream = await requestStream(device);
    try {
      const source = new MediaStreamAudioSourceNode(await context, { mediaStream: stream });
      const processorOptions: CaptureOptions = { toHz: MICROPHONE_HZ };
      const node = new AudioWorkletNode(source.context, "antiphon-capture", { processorOptions });
      node.port.onmessage = (event: MessageEvent<CapturedFrame>) => hooks.frame(event.data);
      // It outputs silence. Some browsers do not run a node that is connected to nothing.
      source.connect(node).connect(source.context.destination);
      return { stream, source, node };
    } catch {
      stop(stream);
      throw createError("unsupported");
    }
  }

  async function open(): Promise<void> {
    const startedIn = generation;
    hooks.changed({ state: "asking" });
    try {
      const opened = await openInput();
      if (startedIn !== generation) {
        release(opened);
        return;
      }
      use(opened);
    } catch (error) {
      if (startedIn !== generation) return;
      fail(error);
      throw error;
    }
  }

  function use(opened: Input): void {
    if (input !== null) release(input);
    input = opened;
    const track = opened.stream.getAudioTracks()[0];
    // The device was unplugged. There may be another one.
    if (track !== undefined) track.onended = () => void reopen().catch(() => undefined);
    report();
  }

  async function reopen(): Promise<void> {
    if (input !== null) release(input);
    input = null;
    device = "";
    await open();
  }

  function report(): void {
    if (input === null) return;
    hooks.changed({ state: "on", muted: isMuted, label: input.stream.getAudioTracks()[0]?.label ?? "" });
  }

  function fail(error: unknown): void {
    const failure = error instanceof MicrophoneError ? error : createError("unsupported");
    hooks.changed({ state: "failed", error: failure });
  }

  return {
    get isOpen() {
      return input !== null;
    },
    async open() {
      if (input !== null) return;
      opening ??= open().finally(() => (opening = null));
      await opening;
    },
    close() {
      generation += 1;
      opening = null;
      if (input !== null) release(input);
      input = null;
      hooks.changed({ state: "off" });
    },
    mute(muted) {
      isMuted = muted;
      report();
    },
    async choose(id) {
      const before = device;
      device = id;
      if (input === null || id === before) return;
      const startedIn = generation;
      try {
        const opened = await openInput();
        if (startedIn === generation) use(opened);
        else release(opened);
      } catch (error) {
        device = before;
        throw error;
      }
    },
  };
}

export async function listDevices(): Promise<Devices> {
  // `mediaDevices` does not exist on a page without HTTPS.
  const all = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
  const of = (kind: MediaDeviceKind): Device[] =>
    all
      .filter((each) => each.kind === kind && !DEFAULT_DEVICE_IDS.has(each.deviceId))
      .map((each) => ({ id: each.deviceId, label: each.label }));
  return { inputs: of("audioinput"), outputs: canChooseOutput() ? of("audiooutput") : [] };
}

async function requestStream(device: string): Promise<MediaStream> {
  if (!isSecureContext) throw createError("insecure");
  if (navigator.mediaDevices?.getUserMedia === undefined) throw createError("unsupported");
  try {
    return await navigator.mediaDevices.getUserMedia({
      audio: {
        echoCancellation: true,
        noiseSuppression: true,
        autoGainControl: true,
        channelCount: { ideal: 1 },
        // Not `exact`: a remembered device may be gone, and any other will do then.
        ...(device === "" ? {} : { deviceId: { ideal: device } }),
      },
    });
  } catch (error) {
    throw createError(classifyError(error));
  }
}

/** Maps the name of a browser's error to a problem. */
function classifyError(error: unknown): MicrophoneProblem {
  const name = error instanceof Error || error instanceof DOMException ? error.name : "";
  if (name === "NotAllowedError" || name === "SecurityError") return "denied";
  if (name === "NotFoundError" || name === "OverconstrainedError") return "missing";
  return "busy";
}

function createError(code: MicrophoneProblem): MicrophoneError {
  return new MicrophoneError(code, MESSAGES[code]);
}

function release(input: Input): void {
  input.source.disconnect();
  input.node.disconnect();
  input.node.port.onmessage = null;
  input.node.port.postMessage("end");
  stop(input.stream);
}

function stop(stream: MediaStream): void {
  for (const track of stream.getTracks()) {
    track.onended = null;
    track.stop();
  }
}
