/** Sends the client's messages: at once while there is a connection, otherwise after the next one opens. */

import type { Opening } from "./resume-state";
import type { ClientMessage, ServerMessage, TextMessage } from "./wire";

const MAX_WAITING = 100;
/** Messages that are useless later. */
const TRANSIENT: ReadonlySet<ClientMessage["type"]> = new Set(["ping", "playback", "test_audio"]);
/** Error codes that mean that the server has read a message and rejected it. */
const REFUSALS: ReadonlySet<string> = new Set(["busy", "unavailable", "too_large", "too_fast", "bad_message", "blocked"]);

/** Returns whether the message was written: a closing socket accepts nothing before it reports the close. */
export type Write = (message: ClientMessage) => boolean;

export interface Outbox {
  send(message: ClientMessage): void;
  opened(opening: Opening, write: Write): void;
  lost(): void;
  /** Takes every server message that is not a duplicate. */
  received(message: ServerMessage): void;
  clear(): void;
}

/**
 * It takes up to half a minute to notice that the network is gone. What is typed meanwhile is written to a dead socket,
 * so a text counts as delivered only when the server has sent its transcript or queued it. If neither is in the replay
 * after a resume, the text is sent again.
 */
export function createOutbox(): Outbox {
  let write: Write | null = null;
  let waiting: ClientMessage[] = [];
  let sent: TextMessage[] = [];
  /** The ids of the messages that the server has queued. */
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
        // The replay is complete, and these texts were not in it.
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
