import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import type { Connection } from "../../src/client/events";
import type { Incoming } from "../../src/client/frames";
import { createSession, type Session } from "../../src/client/session";
import type { HelloMessage } from "../../src/client/wire";
import { FakeSocket, introduce, speechFrame } from "./fake-socket";

const HELLO: HelloMessage = { type: "hello", mode: "text", audio: "binary", token: "secret" };

let page: EventTarget;
let told: Incoming[];
let states: Connection[];
let stalls: boolean[];
let session: Session;

beforeEach(() => {
  vi.useFakeTimers();
  FakeSocket.all = [];
  page = new EventTarget();
  told = [];
  states = [];
  stalls = [];
  session = createSession(
    "ws://host/ws",
    () => HELLO,
    { received: (incoming) => told.push(incoming), connection: (now) => states.push(now), stalled: (now) => stalls.push(now) },
    { Socket: FakeSocket as unknown as new (url: string) => WebSocket, random: () => 1, now: () => Date.now(), page },
  );
});

afterEach(() => {
  session.close();
  vi.useRealTimers();
});

const now = (): Connection => states.at(-1)!;
const texts = (): string[] => told.flatMap((each) => (each.type === "response_chunk" ? [each.text] : []));
const chunk = (n: number, text: string) => ({ type: "response_chunk" as const, n, text, is_first: false });
const state = (n: number, name: string) => ({ type: "state" as const, n, state: name });

/** An open session whose newest message has this number. */
function talk(lastN = 5): FakeSocket {
  session.connect();
  return FakeSocket.last.accept().tell(state(1, "idle"), introduce(2), chunk(lastN, "so far"));
}

function comeBack(): FakeSocket {
  vi.advanceTimersByTime(500);
  return FakeSocket.last.accept();
}

describe("the first message", () => {
  test("is hello with the caller's options and without a handle", () => {
    session.connect();
    FakeSocket.last.accept();
    expect(FakeSocket.last.sent).toEqual([HELLO]);
  });

  test("keeps the token out of the URL", () => {
    session.connect();
    expect(FakeSocket.last.url).toBe("ws://host/ws");
  });
});

describe("messages from the server", () => {
  test("arrive in order", () => {
    talk();
    expect(told.map((each) => each.n)).toEqual([1, 2, 5]);
  });

  test("are ignored if their type is unknown or they are malformed", () => {
    const socket = talk();
    socket.onmessage?.({ data: '{"type":"from_the_future","n":6}' });
    for (const data of ["", "{", "null", "7", '"state"', "{}", '{"type":5}']) socket.onmessage?.({ data });
    socket.tellBytes(new ArrayBuffer(0)).tellBytes(new ArrayBuffer(14)).tellBytes(new Uint8Array(15).buffer);
    expect(told).toHaveLength(3);
  });

  test("include speech from binary frames with big-endian numbers", () => {
    talk().tellBytes(speechFrame(6, 0x01020304, 7, [-32768, 0, 513]));
    expect(told.at(-1)).toEqual({ type: "speech", n: 6, turn: 0x01020304, seq: 7, pcm: new Int16Array([-32768, 0, 513]) });
  });
});

describe("a lost connection", () => {
  test("is reopened with the handle and the last number", () => {
    talk(17).drop();
    comeBack();
    expect(FakeSocket.last.sent[0]).toEqual({ ...HELLO, resume: "handle-2", last_n: 17 });
  });

  test("delivers what was missed once, and nothing twice", () => {
    talk(5).drop();
    comeBack().tell(introduce(9, { resumed: true }), chunk(5, "so far"), chunk(6, "missed"), state(10, "idle"));
    expect(texts()).toEqual(["so far", "missed"]);
  });

  test("in the middle of a replay asks for the rest of it, since the number of `session` is ahead of it", () => {
    talk(5).drop();
    comeBack().tell(introduce(9, { resumed: true }), chunk(6, "missed"));
    FakeSocket.last.drop();
    vi.advanceTimersByTime(1000);
    expect(FakeSocket.last.accept().sent[0]).toMatchObject({ resume: "handle-9", last_n: 6 });
  });

  test("after a whole replay counts `session` too", () => {
    talk(5).drop();
    comeBack().tell(introduce(9, { resumed: true }), chunk(6, "missed"), state(10, "idle"));
    FakeSocket.last.drop();
    vi.advanceTimersByTime(1000);
    expect(FakeSocket.last.accept().sent[0]).toMatchObject({ last_n: 10 });
  });

  test("reports that the session was resumed", () => {
    talk().drop();
    comeBack().tell(introduce(9, { resumed: true }));
    expect(now()).toEqual({ state: "open", session: "resumed", reason: null });
  });

  test("reports that the session is new, and why, and counts its messages from the beginning", () => {
    talk(50).drop();
    comeBack().tell(
      state(1, "idle"),
      { type: "error", n: 2, code: "resume_rejected", message: "The handle is too old.", retryable: false },
      introduce(3, { session_id: "s2" }),
      chunk(4, "new"),
    );
    expect(now()).toEqual({ state: "open", session: "new", reason: "The handle is too old." });
    expect(texts()).toEqual(["so far", "new"]);
  });

  test("waits longer each time, with a countdown, for at most half a minute", () => {
    talk().drop();
    const waits: number[] = [];
    for (let tried = 0; tried < 9; tried++) {
      const current = now();
      if (current.state !== "waiting") throw new Error(current.state);
      waits.push(current.retryInMs);
      vi.advanceTimersByTime(current.retryInMs);
      FakeSocket.last.drop();
    }
    expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
    states.length = 0;
    vi.advanceTimersByTime(2000);
    expect(states.map((each) => each.state === "waiting" && each.retryInMs)).toEqual([29_000, 28_000]);
  });

  test("does not report the last moments of a timer that fires early", () => {
    talk().drop();
    states.length = 0;
    vi.setSystemTime(Date.now() - 3);
    vi.advanceTimersByTime(500);
    expect(states.map((each) => each.state)).toEqual(["connecting"]);
  });

  test("starts from the shortest delay after a stable connection", () => {
    talk().drop();
    vi.advanceTimersByTime(500);
    FakeSocket.last.drop();
    vi.advanceTimersByTime(1000);
    FakeSocket.last.accept().tell(introduce(9, { resumed: true }));
    vi.advanceTimersByTime(10_000);
    FakeSocket.last.drop();
    expect(now()).toMatchObject({ state: "waiting", retryInMs: 500, attempt: 1 });
  });

  test.each(["connect", "online"])("is retried at once on %s", (how) => {
    talk().drop();
    if (how === "connect") session.connect();
    else page.dispatchEvent(new Event("online"));
    expect(FakeSocket.all).toHaveLength(2);
    expect(now()).toEqual({ state: "connecting", attempt: 1 });
  });

  test("is distinguished from a server that cannot be reached", () => {
    talk().drop();
    expect(now()).toMatchObject({ reason: "Connection lost." });
    vi.advanceTimersByTime(500);
    FakeSocket.last.drop();
    expect(now()).toMatchObject({ reason: "The server cannot be reached." });
  });

  test("is retried if the server does not introduce itself within ten seconds", () => {
    session.connect();
    vi.advanceTimersByTime(10_000);
    expect(FakeSocket.all[0]!.closedWith).toBe(4000);
    expect(now()).toMatchObject({ state: "waiting", reason: "The server is not responding." });
  });

  test("is noticed by a ping without an answer", () => {
    const socket = talk();
    vi.advanceTimersByTime(20_000);
    expect(socket.sent.at(-1)).toMatchObject({ type: "ping" });
    vi.advanceTimersByTime(10_000);
    expect(now().state).toBe("waiting");
  });

  test("is noticed sooner while audio is sent", () => {
    const socket = talk();
    session.sendAudio(new Uint8Array(3));
    vi.advanceTimersByTime(4000);
    expect(socket.sent.at(-1)).toMatchObject({ type: "ping" });
    vi.advanceTimersByTime(2900);
    expect(stalls).toEqual([]);
    vi.advanceTimersByTime(200);
    expect(stalls).toEqual([true]);
    socket.tell(chunk(6, "late"));
    expect(stalls).toEqual([true, false]);
    expect(now()).toMatchObject({ state: "open" });
  });

  test("is no stall any more once the connection is lost", () => {
    const socket = talk();
    session.sendAudio(new Uint8Array(3));
    vi.advanceTimersByTime(7000);
    vi.advanceTimersByTime(7000);
    expect(socket.closedWith).toBe(4000);
    expect(stalls).toEqual([true, false]);
    expect(now()).toMatchObject({ state: "waiting", reason: "The server is not responding." });
  });

  test("is not assumed while pings are answered", () => {
    const socket = talk();
    for (let second = 0; second < 100; second++) {
      vi.advanceTimersByTime(1000);
      const last = socket.sent.at(-1)!;
      if (last.type === "ping") socket.tell({ type: "pong", n: 6, t: last.t });
    }
    expect(socket.sent.filter((each) => each.type === "ping")).toHaveLength(5);
    expect(now().state).toBe("open");
  });

  test("is only checked when the browser goes offline, since a server on this machine needs no network", () => {
    talk();
    page.dispatchEvent(new Event("offline"));
    expect(now().state).toBe("open");
    vi.advanceTimersByTime(5000);
    expect(now().state).toBe("waiting");
  });
});

describe("the end of a session", () => {
  test("by the caller closes the socket with code 1000", () => {
    const socket = talk();
    session.close();
    expect(socket.closedWith).toBe(1000);
    expect(now()).toMatchObject({ state: "closed", code: 1000 });
    vi.advanceTimersByTime(60_000);
    expect(FakeSocket.all).toHaveLength(1);
  });

  test.each([1000, 4401, 4403, 4408, 4409, 4999])("by close code %i is final", (code) => {
    talk().drop(code, "because");
    expect(now()).toEqual({ state: "closed", code, reason: "because" });
  });

  test.each([1001, 1005, 1006, 1011, 1012, 1013, 4413, 4429])("is not meant by close code %i", (code) => {
    talk().drop(code);
    expect(now().state).toBe("waiting");
  });

  test("leaves no handle for the next session", () => {
    talk().drop(1000);
    session.connect();
    expect(FakeSocket.last.accept().sent[0]).not.toHaveProperty("resume");
  });

  test("may be requested by an event handler", () => {
    session = createSession(
      "ws://host/ws",
      () => HELLO,
      { received: () => session.close(), connection: (each) => states.push(each), stalled: () => undefined },
      { Socket: FakeSocket as unknown as new (url: string) => WebSocket, random: () => 1, now: () => Date.now(), page },
    );
    talk();
    vi.advanceTimersByTime(60_000);
    expect(now().state).toBe("closed");
    expect(FakeSocket.all).toHaveLength(1);
  });

  test("comes at once for an invalid address", () => {
    session = createSession(
      "nonsense",
      () => HELLO,
      { received: () => undefined, connection: (each) => states.push(each), stalled: () => undefined },
      {
        Socket: class {
          constructor() {
            throw new SyntaxError();
          }
        } as unknown as new (url: string) => WebSocket,
        random: () => 1,
        now: () => Date.now(),
        page: null,
      },
    );
    session.connect();
    expect(now()).toMatchObject({ state: "closed", code: 4000 });
  });
});

test("a server that announced its restart is left when its time is over, and resumed with its handle", () => {
  const socket = talk();
  socket.tell({ type: "go_away", n: 6, time_left_ms: 20_000, reason: "restart", resume: "handle-x" });
  vi.advanceTimersByTime(20_000);
  socket.tell({ type: "pong", n: 7, t: 1 });
  expect(now().state).toBe("open");
  vi.advanceTimersByTime(3000);
  expect(now()).toMatchObject({ state: "waiting", reason: "The server is restarting." });
  comeBack();
  expect(FakeSocket.last.sent[0]).toMatchObject({ resume: "handle-x" });
});

describe("a message that is sent without a connection", () => {
  test("waits for the next connection", () => {
    session.send({ type: "text_message", text: "Hello" });
    const socket = talk();
    expect(socket.sent.slice(1)).toEqual([{ type: "text_message", text: "Hello" }]);
  });

  test("is dropped if it is useless later", () => {
    session.send({ type: "playback", turn: 1, played_ms: 5 });
    expect(talk().sent).toHaveLength(1);
  });

  test("also waits if the socket is about to close", () => {
    const socket = talk();
    socket.readyState = 2;
    session.send({ type: "end_voice" });
    session.sendAudio(new Uint8Array(3));
    expect(socket.frames).toHaveLength(1);
    socket.drop();
    expect(comeBack().tell(introduce(9, { resumed: true })).sent.slice(1)).toEqual([{ type: "end_voice" }]);
  });

  test("is dropped if it is audio, also when the network is congested", () => {
    session.sendAudio(new Uint8Array(3));
    const socket = talk();
    session.sendAudio(new Uint8Array(5));
    socket.bufferedAmount = 1 << 20;
    session.sendAudio(new Uint8Array(7));
    expect(socket.frames.filter((frame) => typeof frame !== "string").map((frame) => frame.length)).toEqual([5]);
  });
});

describe("a text that was written to a dead socket", () => {
  const says = (socket: FakeSocket) => socket.sent.filter((each) => each.type === "text_message").map((each) => each.text);
  const transcript = (n: number, text: string) => ({ type: "transcript" as const, n, text, is_final: true });

  test("is sent again if the replay shows that it never arrived", () => {
    const socket = talk();
    session.send({ type: "text_message", text: "Hello" });
    socket.drop();
    const next = comeBack().tell(introduce(9, { resumed: true }), state(8, "idle"));
    expect(says(next)).toEqual([]);
    next.tell(state(10, "idle"));
    expect(says(next)).toEqual(["Hello"]);
  });

  test("is not sent again if it arrived", () => {
    const socket = talk();
    session.send({ type: "text_message", text: " Hello " });
    socket.drop();
    comeBack().tell(introduce(9, { resumed: true }), transcript(6, "Hello"), state(10, "idle"));
    expect(says(FakeSocket.last)).toEqual([]);
  });

  test("is not sent again if it was answered or rejected before the connection was lost", () => {
    const socket = talk();
    session.send({ type: "text_message", text: "One" });
    session.send({ type: "text_message", text: "Two" });
    socket.tell(transcript(6, "One"), { type: "error", n: 7, code: "busy", message: "", retryable: true }).drop();
    comeBack().tell(introduce(9, { resumed: true }), state(10, "idle"));
    expect(says(FakeSocket.last)).toEqual([]);
  });

  test("is not sent again while the server works on it", () => {
    const socket = talk();
    session.send({ type: "text_message", text: "Hello" });
    socket.drop();
    comeBack().tell(introduce(9, { resumed: true }), state(10, "processing"), transcript(11, "Hello"), state(12, "idle"));
    expect(says(FakeSocket.last)).toEqual([]);
  });

  test("is not sent again if the server has queued it", () => {
    const socket = talk();
    session.send({ type: "text_message", text: "One" });
    socket.tell({ type: "queued", n: 6, messages: [{ id: "q", text: "One" }] }).drop();
    comeBack().tell(introduce(9, { resumed: true }), state(10, "idle"));
    expect(says(FakeSocket.last)).toEqual([]);
  });

  test("is lost with its session", () => {
    const socket = talk();
    session.send({ type: "text_message", text: "Hello" });
    socket.drop();
    comeBack().tell(state(1, "idle"), introduce(2), state(3, "idle"));
    expect(says(FakeSocket.last)).toEqual([]);
  });
});
