/** What a client tells besides the server's messages, and how it tells it. */

import type { ServerMessage, ServerMessages } from "./wire";

/** The code of the notice that says why there is no call. */
export const VOICE_UNAVAILABLE = "voice_unavailable";

/** How the client fares with its connection. */
export type Connection =
  | { state: "connecting"; /** How many tries there were since the last connection that held; 0 at the very first. */ attempt: number }
  | {
      state: "open";
      /** `resumed`: the session goes on, and what was missed follows. `new`: it could not; what was under way is lost. */
      session: "first" | "resumed" | "new";
      /** Why it is a new one. */
      reason: string | null;
    }
  | {
      /** Told about once a second, so that it can be shown as a countdown. */
      state: "waiting";
      retryInMs: number;
      attempt: number;
      reason: string;
    }
  | {
      /** No further try is made until `connect()`. */
      state: "closed";
      /** 1000 is the end that was asked for; 4401: a token is needed; 4403: blocked; 4409: gone on elsewhere. */
      code: number;
      reason: string;
    };

export type MicrophoneProblem =
  /** The browser gives no microphone to a page without https (except on this machine). */
  | "insecure"
  /** The person, or a setting, refused. */
  | "denied"
  /** None is plugged in. */
  | "missing"
  /** Another program holds it, or the system failed. */
  | "busy"
  /** The browser has no such thing. */
  | "unsupported";

/** `message` is a sentence that can be shown. */
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
  /** The browser is asking the person. */
  | { state: "asking" }
  /** What is heard is sent, unless `muted`. */
  | { state: "on"; muted: boolean; /** The name of the device. */ label: string }
  | { state: "failed"; error: MicrophoneError };

/** Whether speech can be heard. `blocked`: not before the person has touched the page. */
export type SoundState = { state: "off" | "ready" | "blocked" } | { state: "failed"; message: string };

/** How loud it is, from 0 to 1 (root mean square). Up to 50 a second, while something is open. */
export interface Level {
  input: number;
  output: number;
  /** Whether the input sounds like speech. */
  speech: boolean;
}

export interface Playing {
  playing: boolean;
  /** The turn whose answer is heard, or was heard last; 0 is a sample of a voice. */
  turn: number;
  /** Of that turn, in milliseconds, by the samples that were heard. */
  playedMs: number;
  /** Of that turn, in milliseconds, by the samples that have come. */
  receivedMs: number;
  /** No more of that turn will come. */
  complete: boolean;
  /** Turned down, since somebody seems to speak. */
  ducked: boolean;
}

/** A device that can be chosen. Without permission browsers give no names: `label` is then empty. */
export interface Device {
  id: string;
  label: string;
}

export interface Devices {
  inputs: Device[];
  /** Empty where the browser does not let a page choose. */
  outputs: Device[];
}

export interface ClientEvents {
  connection: Connection;
  microphone: MicrophoneState;
  sound: SoundState;
  level: Level;
  playing: Playing;
  /** Devices came or went. */
  devices: Devices;
  /** Every message of the server, in its order, also told under its own type. */
  message: ServerMessage;
}

export type AntiphonEvents = ServerMessages & ClientEvents;

type Handler<T> = (event: T) => void;

export interface Emitter<Events> {
  /** Gives a function that ends it. */
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
        // One that fails must not keep the others, or the connection, from going on.
        try {
          (handler as Handler<typeof event>)(event);
        } catch (error) {
          reportError(error);
        }
      }
    },
  };
}
