/** The browser's audio: one context for the microphone and the speaker, with the worklets of both. */

import type { SoundState } from "./events";

const MODULE_URL = import.meta.url;
// A separate file beside this one, since the page's content security policy refuses worklets from blob: and data: URLs.
const WORKLETS_FILE = import.meta.env.DEV ? "worklets.ts" : "antiphon-worklets.js";
const GESTURES = ["pointerdown", "keydown"] as const;

const INSECURE = "This page is not served over HTTPS, so the browser cannot play speech. You can still read the answers.";
const UNSUPPORTED = "This browser cannot play speech. You can still read the answers.";

export interface Sound {
  /** Starts audio if it is allowed: browsers require a click or a key press. Rejects if there is no audio at all. */
  open(): Promise<AudioContext>;
  /** Suspends the context while nothing plays, since a running one uses some CPU all the time. */
  suspend(): void;
  /** Selects a device; "" is the system's default. Ignored where a page cannot choose. */
  setOutput(id: string): Promise<void>;
  close(): void;
}

interface SinkSelectable {
  setSinkId(id: string): Promise<void>;
}

export function canChooseOutput(): boolean {
  return typeof AudioContext !== "undefined" && "setSinkId" in AudioContext.prototype;
}

export function createSound(changed: (now: SoundState) => void): Sound {
  let context: AudioContext | null = null;
  let ready: Promise<AudioContext> | null = null;
  let isSuspended = false;
  let output = "";
  let reported: SoundState["state"] = "off";

  function report(now: SoundState): void {
    if (now.state === reported) return;
    reported = now.state;
    changed(now);
  }

  async function load(): Promise<AudioContext> {
    const made = new AudioContext({ latencyHint: "interactive" });
    context = made;
    made.onstatechange = update;
    await made.audioWorklet.addModule(new URL(WORKLETS_FILE, MODULE_URL));
    if (output !== "") await applyOutput(made);
    update();
    return made;
  }

  async function applyOutput(made: AudioContext): Promise<void> {
    // A remembered device may be gone. The default is used then, which is not an error.
    if (canChooseOutput()) await (made as unknown as SinkSelectable).setSinkId(output).catch(() => undefined);
  }

  function update(): void {
    if (context === null || isSuspended) return;
    const isRunning = context.state === "running";
    for (const gesture of GESTURES) {
      if (isRunning) removeEventListener(gesture, resume, true);
      else addEventListener(gesture, resume, true);
    }
    report({ state: isRunning ? "ready" : "blocked" });
  }

  function resume(): void {
    // This is refused until the user has interacted with the page. The context's state says so.
    if (!isSuspended && context?.state !== "running") context?.resume().catch(() => undefined);
  }

  function fail(message: string): never {
    report({ state: "failed", message });
    throw new Error(message);
  }

  return {
    async open() {
      isSuspended = false;
      if (!isSecureContext) fail(INSECURE);
      if (typeof AudioContext === "undefined" || !("audioWorklet" in AudioContext.prototype)) fail(UNSUPPORTED);
      ready ??= load();
      resume();
      update();
      try {
        return await ready;
      } catch {
        this.close();
        return fail(UNSUPPORTED);
      }
    },
    suspend() {
      isSuspended = true;
      context?.suspend().catch(() => undefined);
    },
    async setOutput(id) {
      output = id;
      if (context !== null) await applyOutput(context);
    },
    close() {
      for (const gesture of GESTURES) removeEventListener(gesture, resume, true);
      if (context !== null) context.onstatechange = null;
      context?.close().catch(() => undefined);
      context = ready = null;
      report({ state: "off" });
    },
  };
}
