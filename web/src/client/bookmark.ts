/** Where a client stands in its session: the handle to come back with, and the last message that it has seen. Both stay in memory. */

import type { Incoming } from "./frames";
import type { HelloMessage, SessionMessage } from "./wire";

/** How a connection began. `resumedN`: messages with lower numbers repeat what was missed. */
export type Opening = { session: "first" } | { session: "resumed"; resumedN: number } | { session: "new"; reason: string };

export interface Taken {
  /** Told with the message that introduces the session. */
  opening?: Opening;
  /** What to pass on now, in this order: nothing twice. */
  messages: Incoming[];
}

export interface Bookmark {
  /** How to begin the next connection. */
  open(hello: HelloMessage): HelloMessage;
  take(message: Incoming): Taken;
  /** What was held back when the connection went. */
  close(): Incoming[];
  /** The session is over: the next one is a first one. */
  forget(): void;
}

export function createBookmark(): Bookmark {
  let handle: string | null = null;
  let lastN = 0;
  let introduced: SessionMessage | null = null;
  let isReturn = false;
  let isGreeted = false;
  let held: Incoming[] = [];

  function greet(session: SessionMessage): Taken {
    const before = held;
    held = [];
    isGreeted = true;
    introduced = session;
    handle = session.resume;
    if (session.resumed) {
      // Its number is ahead of what is repeated after it, so it counts only with the message that follows that.
      return { opening: { session: "resumed", resumedN: session.n }, messages: [session, ...before] };
    }
    lastN = session.n;
    const messages = [...before, session];
    if (!isReturn) return { opening: { session: "first" }, messages };
    const refusal = before.find((each) => each.type === "error" && each.code === "resume_rejected");
    const reason = refusal?.type === "error" ? refusal.message : "The server has started a new session.";
    return { opening: { session: "new", reason }, messages };
  }

  return {
    open(hello) {
      isReturn = handle !== null;
      isGreeted = false;
      held = [];
      return handle === null ? hello : { ...hello, resume: handle, last_n: lastN };
    },

    take(message) {
      if (message.type === "session") {
        if (!isGreeted) return greet(message);
        if (introduced !== null && message.n < introduced.n) {
          // Repeated from an earlier connection: its handle was used up.
          lastN = Math.max(lastN, message.n);
          return { messages: [] };
        }
        introduced = message;
        handle = message.resume;
      } else if (message.type === "go_away") {
        handle = message.resume ?? handle;
      }
      if (!isGreeted && isReturn) {
        // Before the introduction, numbers say nothing: they may be those of a new session.
        held.push(message);
        return { messages: [] };
      }
      if (isGreeted && message.n > 0 && message.n <= lastN) return { messages: [] };
      lastN = Math.max(lastN, message.n);
      return { messages: [message] };
    },

    close() {
      const before = held;
      held = [];
      return before;
    },

    forget() {
      handle = null;
      lastN = 0;
      isGreeted = false;
    },
  };
}
