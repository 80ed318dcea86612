/** The session with the server: one socket at a time, opened again whenever it is lost. */

import { createBookmark } from "./bookmark";
import type { Connection } from "./events";
import { type Incoming, parseMessage, parseSpeech } from "./frames";
import { createOutbox } from "./outbox";
import { type ClientMessage, CLOSES, type HelloMessage } from "./wire";

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 30_000;

/** A connection that held this long was a good one, so the next loss starts from the shortest wait again. */
const STEADY_MS = 10_000;
const OPEN_LIMIT_MS = 10_000;
const PING_MS = 20_000;
/** After a ping, any message will do as a sign of life. */
const ANSWER_LIMIT_MS = 10_000;
/** A server that has said when it closes is given a little longer. */
const GO_AWAY_GRACE_MS = 3_000;
const COUNTDOWN_MS = 1_000;
/** Timers may go off a little early. */
const EARLY_MS = 10;
/** Two seconds of microphone audio that the network does not take. More would come too late to be of use. */
const MAX_UNSENT_BYTES = 64 * 1024;

/** Of a socket's `readyState`. */
const OPEN = 1;
const ENDED = 1000;
/** Ours, for a socket that is given up. Anything but 1000 keeps the session. */
const GIVEN_UP = 4000;

export interface SessionHooks {
  told(incoming: Incoming): void;
  connection(now: Connection): void;
}

/** What is around it: the browser, or a test. */
export interface Surroundings {
  Socket: new (url: string) => WebSocket;
  random: () => number;
  now: () => number;
  /** Tells `online` and `offline`. */
  page: EventTarget | null;
}

export interface Session {
  /** Does nothing while there is a connection; while it waits for the next try, tries now. */
  connect(): void;
  /** What cannot be sent now waits for a connection, unless it is of no use later. */
  send(message: ClientMessage): void;
  /** Dropped if it cannot be sent now. */
  sendAudio(frame: Uint8Array<ArrayBuffer>): void;
  /** For good: the server ends the session too. */
  close(): void;
}

export function browser(): Surroundings {
  return {
    Socket: WebSocket,
    random: Math.random,
    now: () => performance.now(),
    page: typeof window === "undefined" ? null : window,
  };
}

export function createSession(
  url: string,
  hello: () => HelloMessage,
  hooks: SessionHooks,
  around: Surroundings = browser(),
): Session {
  const bookmark = createBookmark();
  const outbox = createOutbox();
  let socket: WebSocket | null = null;
  /** Between `connect` and the end. A hook may end it at any moment. */
  let isWanted = false;
  let isIntroduced = false;
  let openedAt = 0;
  /** Frames of the server. */
  let heard = 0;
  let attempt = 0;
  const timers = new Set<ReturnType<typeof setTimeout>>();

  function later(delayMs: number, task: () => void): void {
    const timer = setTimeout(() => {
      timers.delete(timer);
      task();
    }, delayMs);
    timers.add(timer);
  }

  function stopTimers(): void {
    timers.forEach(clearTimeout);
    timers.clear();
  }

  function open(): void {
    stopTimers();
    isIntroduced = false;
    hooks.connection({ state: "connecting", attempt });
    try {
      socket = new around.Socket(url);
    } catch {
      end(GIVEN_UP, `"${url}" is not a WebSocket address. It should look like wss://example.org/ws.`);
      return;
    }
    const current = socket;
    current.binaryType = "arraybuffer";
    current.onopen = () => current.send(JSON.stringify(bookmark.open(hello())));
    current.onmessage = (event: MessageEvent<string | ArrayBuffer>) => receive(event.data);
    current.onclose = (event) => leave(event.code, event.reason);
    later(OPEN_LIMIT_MS, () => {
      if (!isIntroduced) giveUp("The server is not responding.");
    });
  }

  function receive(data: string | ArrayBuffer): void {
    heard += 1;
    const incoming = typeof data === "string" ? parseMessage(data) : parseSpeech(data);
    if (incoming === null) return;
    const { opening, messages } = bookmark.take(incoming);
    if (opening !== undefined) {
      isIntroduced = true;
      openedAt = around.now();
      hooks.connection({
        state: "open",
        session: opening.session,
        reason: opening.session === "new" ? opening.reason : null,
      });
      if (!isWanted) return;
      outbox.opened(opening, write);
      later(PING_MS, stayAlive);
    }
    messages.forEach(pass);
  }

  function write(message: ClientMessage): boolean {
    if (socket?.readyState !== OPEN) return false;
    socket.send(JSON.stringify(message));
    return true;
  }

  function pass(incoming: Incoming): void {
    if (incoming.type !== "speech") outbox.saw(incoming);
    if (incoming.type === "go_away") {
      later(incoming.time_left_ms + GO_AWAY_GRACE_MS, () => giveUp("The server is restarting."));
    }
    hooks.told(incoming);
  }

  function stayAlive(): void {
    probe(ANSWER_LIMIT_MS);
    later(PING_MS, stayAlive);
  }

  function probe(limitMs: number): void {
    const before = heard;
    outbox.send({ type: "ping", t: around.now() });
    later(limitMs, () => {
      if (heard === before) giveUp("The server is not responding.");
    });
  }

  /** The socket may take long to notice that it is dead, so it is not waited for. */
  function giveUp(reason: string): void {
    const dead = socket;
    leave(GIVEN_UP, reason, true);
    dead?.close(GIVEN_UP);
  }

  function leave(code: number, reason: string, comeBack = comesBack(code)): void {
    detach();
    outbox.lost();
    bookmark.close().forEach(hooks.told);
    if (code === ENDED) bookmark.forget();
    if (!isWanted) return;
    const unsaid = isIntroduced ? "Connection lost." : "The server cannot be reached.";
    const why = reason || CLOSES[code]?.reason || unsaid;
    if (!comeBack) {
      end(code, why);
      return;
    }
    if (isIntroduced && around.now() - openedAt >= STEADY_MS) attempt = 0;
    wait(why);
  }

  function wait(reason: string): void {
    stopTimers();
    attempt += 1;
    const retryAt = around.now() + retryDelayMs(attempt, around.random);
    const count = () => {
      const leftMs = retryAt - around.now();
      if (leftMs < EARLY_MS) {
        open();
        return;
      }
      hooks.connection({ state: "waiting", retryInMs: Math.ceil(leftMs), attempt, reason });
      later(Math.min(leftMs, COUNTDOWN_MS), count);
    };
    count();
  }

  function detach(): void {
    if (socket !== null) socket.onopen = socket.onmessage = socket.onclose = null;
    socket = null;
  }

  function end(code: number, reason: string): void {
    stopTimers();
    detach();
    isWanted = false;
    attempt = 0;
    isIntroduced = false;
    around.page?.removeEventListener("online", connect);
    around.page?.removeEventListener("offline", doubt);
    hooks.connection({ state: "closed", code, reason });
  }

  function connect(): void {
    if (socket !== null) return;
    isWanted = true;
    around.page?.addEventListener("online", connect);
    around.page?.addEventListener("offline", doubt);
    open();
  }

  /** A server on this machine can be reached without a network, so this proves nothing yet. */
  function doubt(): void {
    if (isIntroduced && socket !== null) probe(ANSWER_LIMIT_MS / 2);
  }

  return {
    connect,
    send: outbox.send,
    sendAudio(frame) {
      if (isIntroduced && socket?.readyState === OPEN && socket.bufferedAmount < MAX_UNSENT_BYTES) socket.send(frame);
    },
    close() {
      const last = socket;
      outbox.clear();
      bookmark.forget();
      if (isWanted) end(ENDED, "The session has ended.");
      last?.close(ENDED);
    },
  };
}

function comesBack(code: number): boolean {
  // A code of the server's own that is not known here is no invitation to come back.
  return CLOSES[code]?.comeBack ?? code < GIVEN_UP;
}

/** Before the `attempt`th try, which counts from 1: between the half and the whole of what doubles each time. */
function retryDelayMs(attempt: number, random: () => number): number {
  const wholeMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempt - 1, 32));
  // The clients of a server that restarts must not all come back in the same moment.
  return wholeMs * (0.5 + 0.5 * random());
}
