/** The client's own events, besides the server's messages, and the emitter for both. */

import type { NoticeMessage, ServerMessage, ServerMessages } from "./wire";

/** The code of the notice that says why there is no call. */
export const VOICE_UNAVAILABLE = "voice_unavailable";
/** The code of the notice that all models have exceeded their limits. */
export const EXHAUSTED = "energy_exhausted";

/** Whether this notice means that there is no call, or no longer. */
export function endsCall({ code }: NoticeMessage): boolean {
  return code === VOICE_UNAVAILABLE || code === EXHAUSTED;
}

/** The state of the connection. */
export type Connection =
  | { state: "connecting"; /** How many attempts were made since the last stable connection; 0 for the very first. */ attempt: number }
  | {
      state: "open";
      /**
       * `resumed`: the session continues, and what was missed follows. `new`: it could not be resumed, and work in
       * progress is lost.
       */
      session: "first" | "resumed" | "new";
      /** Why the session is a new one. */
      reason: string | null;
    }
  | {
      /** Sent about once a second, so that it can be shown as a countdown. */
      state: "waiting";
      retryInMs: number;
      attempt: number;
      reason: string;
    }
  | {
      /** There are no further attempts until `connect()`. */
      state: "closed";
      /**
       * 1000: closed on request; 4401: a token is required; 4403: blocked; 4409: another connection took over the
       * session.
       */
      code: number;
      reason: string;
    };

export type MicrophoneProblem =
  /** Browsers only allow the microphone on pages served over HTTPS or from this machine. */
  | "insecure"
  /** The user, or a browser setting, refused. */
  | "denied"
  /** No microphone is connected. */
  | "missing"
  /** Another program uses it, or the system failed. */
  | "busy"
  /** The browser cannot record audio. */
  | "unsupported";

/** `message` is a sentence to show to the user. */
export class MicrophoneError extends Error {
  override readonly name = "MicrophoneError";

  constructor(
    readonly code: MicrophoneProblem,
    message: string,
  ) {
    super(message);
  }
}

export type MicrophoneState =
  | { state: "off" }
  /** The browser is asking the user for permission. */
  | { state: "asking" }
  /** Audio is sent, unless `muted`. */
  | { state: "on"; muted: boolean; /** The name of the device. */ label: string }
  | { state: "failed"; error: MicrophoneError };

/** Whether speech can be played. `blocked`: not until the user has interacted with the page. */
export type SoundState = { state: "off" | "ready" | "blocked" } | { state: "failed"; message: string };

/** Loudness from 0 to 1 (root mean square). Sent up to 80 times a second while audio is open. */
export interface Level {
  input: number;
  output: number;
  /** Whether the input sounds like speech. */
  speech: boolean;
}

export interface Playing {
  playing: boolean;
  /** The turn whose answer is playing, or played last; 0 for a voice sample. */
  turn: number;
  /** How much of that turn was played, in milliseconds. */
  playedMs: number;
  /** How much of that turn has arrived, in milliseconds. */
  receivedMs: number;
  /** Whether all audio of that turn has arrived. */
  complete: boolean;
  /** Whether playback is turned down because somebody seems to speak. */
  ducked: boolean;
  /** Whether playback waits until the server knows what somebody has said over it. */
  held: boolean;
}

/** A device that can be chosen. Without microphone permission browsers hide the names: `label` is empty then. */
export interface Device {
  id: string;
  label: string;
}

export interface Devices {
  inputs: Device[];
  /** Empty if the browser does not let pages choose. */
  outputs: Device[];
}

export interface ClientEvents {
  connection: Connection;
  /** Whether the server has stopped answering: what is said now may not be heard. */
  stalled: boolean;
  microphone: MicrophoneState;
  sound: SoundState;
  level: Level;
  playing: Playing;
  /** A device was added or removed. */
  devices: Devices;
  /** Every server message, in order. Each is also emitted under its own type. */
  message: ServerMessage;
}

export type AntiphonEvents = ServerMessages & ClientEvents;

type Handler<T> = (event: T) => void;

export interface Emitter<Events> {
  /** Returns a function that unsubscribes. */
  on<Type extends keyof Events>(type: Type, handler: Handler<Events[Type]>): () => void;
  emit<Type extends keyof Events>(type: Type, event: Events[Type]): void;
}

export function createEmitter<Events>(): Emitter<Events> {
  const handlers = new Map<keyof Events, Set<Handler<never>>>();
  return {
    on(type, handler) {
      const all = handlers.get(type) ?? new Set();
      handlers.set(type, all.add(handler));
      return () => void all.delete(handler);
    },
    emit(type, event) {
      for (const handler of [...(handlers.get(type) ?? [])]) {
        // A handler that throws must not stop the others, or the connection.
        try {
          (handler as Handler<typeof event>)(event);
        } catch (error) {
          reportError(error);
        }
      }
    },
  };
}
