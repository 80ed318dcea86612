/** Where a client stands in its session: the handle to come back with, and the last message that it has seen. Both stay in memory. */

import type { Incoming } from "./frames";
import type { HelloMessage, SessionMessage } from "./wire";

/** How a connection began. `resumedN`: messages with lower numbers repeat what was missed. */
export type Opening = { session: "first" } | { session: "resumed"; resumedN: number } | { session: "new"; reason: string };

export interface Received {
  /** Told with the message that introduces the session. */
  opening?: Opening;
  /** What to pass on now, in this order: nothing twice. */
  messages: Incoming[];
}

export interface ResumeState {
  /** How to begin the next connection. */
  toHello(hello: HelloMessage): HelloMessage;
  receive(message: Incoming): Received;
  /** What was held back when the connection went. */
  takeHeld(): Incoming[];
  /** The session is over: the next one is a first one. */
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
      // Its number is ahead of what is repeated after it, so it counts only with the message that follows that.
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
          // Repeated from an earlier connection: its handle was used up.
          lastN = Math.max(lastN, message.n);
          return { messages: [] };
        }
        latestSession = message;
        handle = message.resume;
      } else if (message.type === "go_away") {
        handle = message.resume ?? handle;
      }
      if (!isIntroduced && isResuming) {
        // Before the introduction, numbers say nothing: they may be those of a new session.
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
