/** The session with the server: one socket at a time, reopened whenever it is lost. */

import { createResumeState } from "./resume-state";
import type { Connection } from "./events";
import { type Incoming, parseMessage, parseSpeech } from "./frames";
import { createOutbox } from "./outbox";
import { type ClientMessage, CLOSES, type HelloMessage } from "./wire";

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 30_000;

/** After a connection that lasted this long, the retry delay starts from the shortest again. */
const STEADY_MS = 10_000;
const OPEN_LIMIT_MS = 10_000;
const PING_MS = 20_000;
/** While the user may be speaking, it must soon be noticed that nobody hears it. */
const CALL_PING_MS = 4_000;
/** Any message counts as an answer to a ping. */
const ANSWER_LIMIT_MS = 10_000;
/** After this time without an answer, the connection counts as stalled. */
const STALL_MS = 3_000;
/** How much longer than announced a server may take to close. */
const GO_AWAY_GRACE_MS = 3_000;
const COUNTDOWN_MS = 1_000;
/** Timers may fire a little early. */
const TIMER_TOLERANCE_MS = 10;
/** Two seconds of microphone audio that the network has not accepted yet. More would arrive too late to be useful. */
const MAX_UNSENT_BYTES = 64 * 1024;

/** A `readyState` of sockets. */
const OPEN = 1;
const NORMAL_CLOSURE = 1000;
/** The client's own close code for an abandoned socket. Any code but 1000 keeps the session. */
const ABANDONED = 4000;

export interface SessionHooks {
  received(incoming: Incoming): void;
  connection(now: Connection): void;
  /** The server has stopped answering, or answers again. */
  stalled(now: boolean): void;
}

/** What the session needs from its environment: the browser, or a test. */
export interface Environment {
  Socket: new (url: string) => WebSocket;
  random: () => number;
  now: () => number;
  /** The source of `online` and `offline` events. */
  page: EventTarget | null;
}

export interface Session {
  /** Does nothing while there is a connection. If a retry is pending, it is made now. */
  connect(): void;
  /** A message that cannot be sent now waits for a connection, unless it would be useless later. */
  send(message: ClientMessage): void;
  /** Dropped if it cannot be sent now. */
  sendAudio(frame: Uint8Array<ArrayBuffer>): void;
  /** Closes for good: the server ends the session too. */
  close(): void;
}

export function browserEnvironment(): Environment {
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
  environment: Environment = browserEnvironment(),
): Session {
  const resumeState = createResumeState();
  const outbox = createOutbox();
  let socket: WebSocket | null = null;
  /** True between `connect` and the end. A hook may end the session at any moment. */
  let isWanted = false;
  let isIntroduced = false;
  let openedAt = 0;
  /** How many frames the server has sent. */
  let framesReceived = 0;
  let attempt = 0;
  let isStalled = false;
  let pingedAt = 0;
  /** Whether audio was sent since the last ping. */
  let hasSentAudio = false;
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
      socket = new environment.Socket(url);
    } catch {
      end(ABANDONED, `"${url}" is not a WebSocket address. It should look like wss://example.org/ws.`);
      return;
    }
    const current = socket;
    current.binaryType = "arraybuffer";
    current.onopen = () => current.send(JSON.stringify(resumeState.toHello(hello())));
    current.onmessage = (event: MessageEvent<string | ArrayBuffer>) => receive(event.data);
    current.onclose = (event) => handleClose(event.code, event.reason);
    later(OPEN_LIMIT_MS, () => {
      if (!isIntroduced) abandon("The server is not responding.");
    });
  }

  function setStalled(now: boolean): void {
    if (now === isStalled) return;
    isStalled = now;
    hooks.stalled(now);
  }

  function receive(data: string | ArrayBuffer): void {
    framesReceived += 1;
    setStalled(false);
    const incoming = typeof data === "string" ? parseMessage(data) : parseSpeech(data);
    if (incoming === null) return;
    const { opening, messages } = resumeState.receive(incoming);
    if (opening !== undefined) {
      isIntroduced = true;
      openedAt = environment.now();
      hooks.connection({
        state: "open",
        session: opening.session,
        reason: opening.session === "new" ? opening.reason : null,
      });
      if (!isWanted) return;
      outbox.opened(opening, write);
      pingedAt = environment.now();
      later(CALL_PING_MS, keepAlive);
    }
    messages.forEach(deliver);
  }

  function write(message: ClientMessage): boolean {
    if (socket?.readyState !== OPEN) return false;
    socket.send(JSON.stringify(message));
    return true;
  }

  function deliver(incoming: Incoming): void {
    if (incoming.type !== "speech") outbox.received(incoming);
    if (incoming.type === "go_away") {
      later(incoming.time_left_ms + GO_AWAY_GRACE_MS, () => abandon("The server is restarting."));
    }
    hooks.received(incoming);
  }

  function keepAlive(): void {
    const isDue = environment.now() - pingedAt >= PING_MS - TIMER_TOLERANCE_MS;
    if (hasSentAudio || isDue) probe(ANSWER_LIMIT_MS);
    later(CALL_PING_MS, keepAlive);
  }

  function probe(limitMs: number): void {
    const before = framesReceived;
    pingedAt = environment.now();
    hasSentAudio = false;
    outbox.send({ type: "ping", t: pingedAt });
    later(STALL_MS, () => {
      if (framesReceived === before) setStalled(true);
    });
    later(limitMs, () => {
      if (framesReceived === before) abandon("The server is not responding.");
    });
  }

  /** Leaves the socket without waiting for its close event: a dead socket may take long to notice. */
  function abandon(reason: string): void {
    const dead = socket;
    handleClose(ABANDONED, reason, true);
    dead?.close(ABANDONED);
  }

  function handleClose(code: number, reason: string, reconnect = shouldReconnect(code)): void {
    detach();
    outbox.lost();
    resumeState.takeHeld().forEach(hooks.received);
    if (code === NORMAL_CLOSURE) resumeState.reset();
    if (!isWanted) return;
    const fallback = isIntroduced ? "Connection lost." : "The server cannot be reached.";
    const why = reason || CLOSES[code]?.reason || fallback;
    if (!reconnect) {
      end(code, why);
      return;
    }
    if (isIntroduced && environment.now() - openedAt >= STEADY_MS) attempt = 0;
    retryLater(why);
  }

  function retryLater(reason: string): void {
    stopTimers();
    attempt += 1;
    const retryAt = environment.now() + retryDelayMs(attempt, environment.random);
    const tick = () => {
      const leftMs = retryAt - environment.now();
      if (leftMs < TIMER_TOLERANCE_MS) {
        open();
        return;
      }
      hooks.connection({ state: "waiting", retryInMs: Math.ceil(leftMs), attempt, reason });
      later(Math.min(leftMs, COUNTDOWN_MS), tick);
    };
    tick();
  }

  function detach(): void {
    setStalled(false);
    hasSentAudio = false;
    if (socket !== null) socket.onopen = socket.onmessage = socket.onclose = null;
    socket = null;
  }

  function end(code: number, reason: string): void {
    stopTimers();
    detach();
    isWanted = false;
    attempt = 0;
    isIntroduced = false;
    environment.page?.removeEventListener("online", connect);
    environment.page?.removeEventListener("offline", checkConnection);
    hooks.connection({ state: "closed", code, reason });
  }

  function connect(): void {
    if (socket !== null) return;
    isWanted = true;
    environment.page?.addEventListener("online", connect);
    environment.page?.addEventListener("offline", checkConnection);
    open();
  }

  /** Probes the connection instead of closing it: a server on this machine can be reached without a network. */
  function checkConnection(): void {
    if (isIntroduced && socket !== null) probe(ANSWER_LIMIT_MS / 2);
  }

  return {
    connect,
    send: outbox.send,
    sendAudio(frame) {
      if (!isIntroduced || socket?.readyState !== OPEN || socket.bufferedAmount >= MAX_UNSENT_BYTES) return;
      hasSentAudio = true;
      socket.send(frame);
    },
    close() {
      const last = socket;
      outbox.clear();
      resumeState.reset();
      if (isWanted) end(NORMAL_CLOSURE, "The session has ended.");
      last?.close(NORMAL_CLOSURE);
    },
  };
}

function shouldReconnect(code: number): boolean {
  // Unknown codes of the server's own are final.
  return CLOSES[code]?.comeBack ?? code < ABANDONED;
}

/** The delay before a retry, counted from 1. It doubles each time, and is shortened by up to half at random. */
function retryDelayMs(attempt: number, random: () => number): number {
  const wholeMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempt - 1, 32));
  // The clients of a server that restarts must not all reconnect at the same moment.
  return wholeMs * (0.5 + 0.5 * random());
}
