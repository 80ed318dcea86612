/** What the client says: at once while there is a connection, else when there is one again. */

import type { Opening } from "./resume-state";
import type { ClientMessage, ServerMessage, TextMessage } from "./wire";

const MAX_WAITING = 100;
/** Worth nothing later. */
const TRANSIENT: ReadonlySet<ClientMessage["type"]> = new Set(["ping", "playback", "test_audio"]);
/** The server has read the message, and does not take it. */
const REFUSALS: ReadonlySet<string> = new Set(["busy", "unavailable", "too_large", "too_fast", "bad_message", "blocked"]);

/** Whether it could be written: a socket that closes takes no more, some time before it says so. */
export type Write = (message: ClientMessage) => boolean;

export interface Outbox {
  send(message: ClientMessage): void;
  opened(opening: Opening, write: Write): void;
  lost(): void;
  /** Every message that is not a repetition. */
  received(message: ServerMessage): void;
  clear(): void;
}

/**
 * A network that goes away takes half a minute to be missed. What is typed meanwhile is written to a dead socket, so a
 * text counts as sent when the server has told its transcript, or that it waits. After a resume without it, it is sent again.
 */
export function createOutbox(): Outbox {
  let write: Write | null = null;
  let waiting: ClientMessage[] = [];
  let sent: TextMessage[] = [];
  /** Ids of what waits at the server. */
  let queued: ReadonlySet<string> = new Set();
  let unconfirmed: { texts: TextMessage[]; afterN: number } | null = null;

  function send(message: ClientMessage): void {
    if (write?.(message)) {
      if (message.type === "text_message") sent.push(message);
    } else if (!TRANSIENT.has(message.type) && waiting.length < MAX_WAITING) {
      waiting.push(message);
    }
  }

  function acknowledge(text: string): void {
    const matches = (message: TextMessage) => message.text.trim() === text.trim();
    const list = unconfirmed !== null && unconfirmed.texts.some(matches) ? unconfirmed.texts : sent;
    const index = list.findIndex(matches);
    if (index >= 0) list.splice(index, 1);
  }

  return {
    send,
    opened(opening, writer) {
      unconfirmed = opening.session === "resumed" && sent.length > 0 ? { texts: sent, afterN: opening.resumedN } : null;
      sent = [];
      write = writer;
      const pending = waiting;
      waiting = [];
      pending.forEach(send);
    },
    lost() {
      write = null;
      if (unconfirmed !== null) sent = [...unconfirmed.texts, ...sent];
      unconfirmed = null;
    },
    received(message) {
      if (message.type === "transcript" && message.is_final) acknowledge(message.text);
      if (message.type === "queued") {
        message.messages.filter(({ id }) => !queued.has(id)).forEach(({ text }) => acknowledge(text));
        queued = new Set(message.messages.map(({ id }) => id));
      }
      if (message.type === "error" && REFUSALS.has(message.code)) sent.shift();
      const isAtRest = message.type === "state" && (message.state === "idle" || message.state === "listening");
      if (unconfirmed !== null && isAtRest && message.n > unconfirmed.afterN) {
        // All that was missed has been repeated, and these were not among it.
        const { texts } = unconfirmed;
        unconfirmed = null;
        texts.forEach(send);
      }
    },
    clear() {
      write = null;
      waiting = [];
      sent = [];
      unconfirmed = null;
    },
  };
}
