/** The browser's audio: one context for the microphone and the loudspeaker, with the worklets of both. */

import type { SoundState } from "./events";

const HERE = import.meta.url;
// A file of its own beside this one: the page's policy refuses worklets from blob: and data: addresses.
const WORKLETS = import.meta.env.DEV ? "worklets.ts" : "antiphon-worklets.js";
const GESTURES = ["pointerdown", "keydown"] as const;

const INSECURE = "This page is not served over HTTPS, so the browser cannot play speech. You can still read the answers.";
const UNSUPPORTED = "This browser cannot play speech. You can still read the answers.";

export interface Sound {
  /** Lets sound out, if it may: browsers want a click or a key. Rejects where there is no sound at all. */
  open(): Promise<AudioContext>;
  /** Nothing is heard for now. An open context costs a little all the time. */
  rest(): void;
  /** "" is the system's default. Ignored where a page cannot choose. */
  setOutput(id: string): Promise<void>;
  close(): void;
}

interface Steerable {
  setSinkId(id: string): Promise<void>;
}

export function canChooseOutput(): boolean {
  return typeof AudioContext !== "undefined" && "setSinkId" in AudioContext.prototype;
}

export function createSound(changed: (now: SoundState) => void): Sound {
  let context: AudioContext | null = null;
  let ready: Promise<AudioContext> | null = null;
  let isResting = false;
  let output = "";
  let told: SoundState["state"] = "off";

  function tell(now: SoundState): void {
    if (now.state === told) return;
    told = now.state;
    changed(now);
  }

  async function load(): Promise<AudioContext> {
    const made = new AudioContext({ latencyHint: "interactive" });
    context = made;
    made.onstatechange = report;
    await made.audioWorklet.addModule(new URL(WORKLETS, HERE));
    if (output !== "") await steer(made);
    report();
    return made;
  }

  async function steer(made: AudioContext): Promise<void> {
    // A device that was remembered may be gone; then the default is heard, and nothing is wrong.
    if (canChooseOutput()) await (made as unknown as Steerable).setSinkId(output).catch(() => undefined);
  }

  function report(): void {
    if (context === null || isResting) return;
    const isRunning = context.state === "running";
    for (const gesture of GESTURES) {
      if (isRunning) removeEventListener(gesture, wake, true);
      else addEventListener(gesture, wake, true);
    }
    tell({ state: isRunning ? "ready" : "blocked" });
  }

  function wake(): void {
    // Refused until the person has touched the page. The state tells.
    if (!isResting && context?.state !== "running") context?.resume().catch(() => undefined);
  }

  function fail(message: string): never {
    tell({ state: "failed", message });
    throw new Error(message);
  }

  return {
    async open() {
      isResting = false;
      if (!isSecureContext) fail(INSECURE);
      if (typeof AudioContext === "undefined" || !("audioWorklet" in AudioContext.prototype)) fail(UNSUPPORTED);
      ready ??= load();
      wake();
      report();
      try {
        return await ready;
      } catch {
        this.close();
        return fail(UNSUPPORTED);
      }
    },
    rest() {
      isResting = true;
      context?.suspend().catch(() => undefined);
    },
    async setOutput(id) {
      output = id;
      if (context !== null) await steer(context);
    },
    close() {
      for (const gesture of GESTURES) removeEventListener(gesture, wake, true);
      if (context !== null) context.onstatechange = null;
      context?.close().catch(() => undefined);
      context = ready = null;
      tell({ state: "off" });
    },
  };
}
