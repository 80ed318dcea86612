/**
 * What a client needs to resume its session: the handle, and the number of the last message it has seen. Both stay in
 * memory.
 */

import type { Incoming } from "./frames";
import type { HelloMessage, SessionMessage } from "./wire";

/** How a connection began. Messages with numbers below `resumedN` repeat what was missed. */
export type Opening = { session: "first" } | { session: "resumed"; resumedN: number } | { session: "new"; reason: string };

export interface Received {
  /** Set with the message that introduces the session. */
  opening?: Opening;
  /** The messages to deliver now, in this order and without duplicates. */
  messages: Incoming[];
}

export interface ResumeState {
  /** Adds to `hello` what resumes the session, for the next connection. */
  toHello(hello: HelloMessage): HelloMessage;
  receive(message: Incoming): Received;
  /** Returns the messages that were held back when the connection closed. */
  takeHeld(): Incoming[];
  /** Forgets the session, so that the next one is a first one. */
  reset(): void;
}

export function createResumeState(): ResumeState {
  let handle: string | null = null;
  let lastN = 0;
  let latestSession: SessionMessage | null = null;
  let isResuming = false;
  let isIntroduced = false;
  let held: Incoming[] = [];

  function introduce(session: SessionMessage): Received {
    const before = held;
    held = [];
    isIntroduced = true;
    latestSession = session;
    handle = session.resume;
    if (session.resumed) {
      // Its number is ahead of the replay that follows, so it does not count as seen yet.
      return { opening: { session: "resumed", resumedN: session.n }, messages: [session, ...before] };
    }
    lastN = session.n;
    const messages = [...before, session];
    if (!isResuming) return { opening: { session: "first" }, messages };
    const refusal = before.find((each) => each.type === "error" && each.code === "resume_rejected");
    const reason = refusal?.type === "error" ? refusal.message : "The server has started a new session.";
    return { opening: { session: "new", reason }, messages };
  }

  return {
    toHello(hello) {
      isResuming = handle !== null;
      isIntroduced = false;
      held = [];
      return handle === null ? hello : { ...hello, resume: handle, last_n: lastN };
    },

    receive(message) {
      if (message.type === "session") {
        if (!isIntroduced) return introduce(message);
        if (latestSession !== null && message.n < latestSession.n) {
          // A replayed message from an earlier connection, whose handle has been used.
          lastN = Math.max(lastN, message.n);
          return { messages: [] };
        }
        latestSession = message;
        handle = message.resume;
      } else if (message.type === "go_away") {
        handle = message.resume ?? handle;
      }
      if (!isIntroduced && isResuming) {
        // Until the session is introduced, the numbers may be those of a new session.
        held.push(message);
        return { messages: [] };
      }
      if (isIntroduced && message.n > 0 && message.n <= lastN) return { messages: [] };
      lastN = Math.max(lastN, message.n);
      return { messages: [message] };
    },

    takeHeld() {
      const before = held;
      held = [];
      return before;
    },

    reset() {
      handle = null;
      lastN = 0;
      isIntroduced = false;
    },
  };
}
