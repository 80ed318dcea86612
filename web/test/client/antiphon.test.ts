// @vitest-environment happy-dom
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { Antiphon, type AntiphonEvents } from "../../src/client/antiphon";
import type { ClientMessage } from "../../src/client/wire";
import { FakeContext, type FakeDevices, FakeNode, stubAudio } from "./fake-audio";
import { FakeSocket, introduce, speechFrame } from "./fake-socket";

const LOUD = 0.1;
const QUIET = 0.001;

let devices: FakeDevices;
let antiphon: Antiphon;
let n: number;

beforeEach(() => {
  vi.useFakeTimers();
  FakeSocket.all = [];
  devices = stubAudio();
  vi.stubGlobal("WebSocket", FakeSocket);
  antiphon = new Antiphon({ url: "ws://host/ws", token: "secret", conversationId: "c0" });
  n = 10;
});

afterEach(() => {
  antiphon.close();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

function connect(): FakeSocket {
  antiphon.connect();
  return FakeSocket.last.accept().tell({ type: "state", n: 1, state: "idle" }, introduce(2));
}

function tell(type: string, fields: Record<string, unknown> = {}): void {
  FakeSocket.last.tell({ type, n: ++n, ...fields } as Parameters<FakeSocket["tell"]>[0]);
}

const said = (type?: ClientMessage["type"]): ClientMessage[] =>
  FakeSocket.last.sent.slice(1).filter((message) => type === undefined || message.type === type);
const frames = (): Uint8Array[] => FakeSocket.last.frames.filter((frame) => typeof frame !== "string");
const settle = () => vi.advanceTimersByTimeAsync(0);
const player = (): FakeNode => FakeNode.named("antiphon-player");
const wasFlushed = (): boolean => player().told.some((message) => "flush" in (message as object));

async function call(): Promise<void> {
  connect();
  await antiphon.startVoice();
  tell("state", { state: "listening" });
}

/** The assistant speaks, and this much of the turn was played. */
async function speak(turn = 1, playedMs = 500): Promise<void> {
  tell("state", { state: "speaking" });
  FakeSocket.last.tellBytes(speechFrame(++n, turn, 0, [1, 2, 3]));
  await settle();
  player().post({ position: { turn, playedMs: playedMs + 20 }, level: 0.2 });
}

function hear(rms: number, ms: number): void {
  for (let heardMs = 0; heardMs < ms; heardMs += 20) {
    FakeNode.named("antiphon-capture").post({ pcm: new Int16Array(320).fill(7), rms });
  }
}

test("hello contains the token, the mode, the conversation and binary audio", () => {
  connect();
  expect(FakeSocket.last.sent[0]).toEqual({
    type: "hello",
    token: "secret",
    mode: "text",
    audio: "binary",
    features: ["hold"],
    conversation_id: "c0",
    client: "antiphon-web/1",
  });
});

test("another token can be tried", () => {
  connect().drop(4401);
  antiphon.connect("better");
  expect(FakeSocket.last.accept().sent[0]).toMatchObject({ token: "better" });
});

describe("the conversation to continue", () => {
  const returned = (): ClientMessage => {
    FakeSocket.last.drop();
    vi.advanceTimersByTime(500);
    return FakeSocket.last.accept().sent[0]!;
  };

  beforeEach(() => {
    antiphon = new Antiphon({ url: "ws://host/ws", initialMessages: [{ role: "user", content: "Before" }] });
  });

  test("is null until something was said, since it is not stored before", () => {
    connect();
    expect(antiphon.conversationId).toBeNull();
    expect(returned()).not.toHaveProperty("conversation_id");
    expect(FakeSocket.last.sent[0]).toHaveProperty("initial_messages");
  });

  test("is null while its history is nothing but the initial messages, which are sent again", () => {
    connect();
    tell("history", { conversation_id: "c1", turns: [{ role: "user", content: "Before", spoken: false, at: null, calls: [] }] });
    expect(antiphon.conversationId).toBeNull();
    expect(returned()).toHaveProperty("initial_messages");
  });

  test("is that of another history, which the user has loaded", () => {
    connect();
    tell("history", { conversation_id: "c7", turns: [] });
    expect(antiphon.conversationId).toBe("c7");
    expect(returned()).not.toHaveProperty("initial_messages");
  });

  test("is the session's once something was said, and already has the initial messages", () => {
    connect();
    tell("transcript", { text: "Hello", is_final: true });
    expect(antiphon.conversationId).toBe("c1");
    expect(returned()).toMatchObject({ conversation_id: "c1" });
    expect(FakeSocket.last.sent[0]).not.toHaveProperty("initial_messages");
  });

  test("is the session's once a turn was answered, even without a transcript", () => {
    connect();
    tell("state", { state: "processing" });
    tell("response", { text: "Hello." });
    expect(antiphon.conversationId).toBe("c1");
  });

  test("is null after a greeting, which is not stored", () => {
    connect();
    tell("state", { state: "speaking" });
    tell("response", { text: "Hello." });
    expect(antiphon.conversationId).toBeNull();
  });

  test("is the loaded one", () => {
    connect();
    tell("history", { conversation_id: "c7", turns: [] });
    expect(antiphon.conversationId).toBe("c7");
  });

  test("is null if the server no longer has it", () => {
    antiphon = new Antiphon({ url: "ws://host/ws", conversationId: "gone" });
    connect();
    tell("error", { code: "unknown_conversation", message: "", retryable: false });
    expect(antiphon.conversationId).toBeNull();
  });
});

describe("events", () => {
  test("report every message under its type and as a message, until unsubscribed", () => {
    const told: string[] = [];
    const stop = antiphon.on("response", (message) => told.push(message.text));
    antiphon.on("message", (message) => told.push(message.type));
    connect();
    tell("response", { text: "Yes." });
    stop();
    tell("response", { text: "No." });
    expect(told).toEqual(["state", "session", "response", "Yes.", "response"]);
  });

  test("report the connection", () => {
    const told: string[] = [];
    antiphon.on("connection", ({ state }) => told.push(state));
    connect().drop(4409);
    expect(told).toEqual(["connecting", "open", "closed"]);
    expect(antiphon.connection.state).toBe("closed");
  });

  test("continue after a handler that throws", () => {
    const reported = vi.fn();
    vi.stubGlobal("reportError", reported);
    antiphon.on("response", () => {
      throw new Error("a page's own");
    });
    const told = vi.fn();
    antiphon.on("response", told);
    connect();
    tell("response", { text: "Yes." });
    expect([told.mock.calls.length, reported.mock.calls.length]).toEqual([1, 1]);
  });
});

describe("a typed message", () => {
  test("is trimmed, and not sent if it is empty", () => {
    connect();
    antiphon.say("  Hello ");
    antiphon.say("   ");
    expect(said()).toEqual([{ type: "text_message", text: "Hello" }]);
  });

  test("stops the assistant, and first reports what was heard", async () => {
    await call();
    await speak(1, 700);
    antiphon.say("Stop, something else");
    expect(wasFlushed()).toBe(true);
    expect(said().slice(-2)).toEqual([
      { type: "playback", turn: 1, played_ms: 700 },
      { type: "text_message", text: "Stop, something else" },
    ]);
  });
});

test("other commands are sent as they are", () => {
  connect();
  antiphon.confirm("t", true);
  antiphon.settings({ volume: 50 });
  antiphon.loadConversation("c7");
  antiphon.clearConversation();
  antiphon.testAudio("joe");
  expect(said()).toEqual([
    { type: "confirm", confirmation_token: "t", approved: true },
    { type: "settings", volume: 50 },
    { type: "load_conversation", conversation_id: "c7" },
    { type: "clear_conversation" },
    { type: "test_audio", voice: "joe" },
  ]);
});

describe("a call", () => {
  test("starts when the microphone is open", async () => {
    connect();
    await antiphon.startVoice("What time is it?");
    expect(said()).toEqual([{ type: "start_voice", pending_request: "What time is it?" }]);
    expect(antiphon.microphone).toEqual({ state: "on", muted: false, label: "Microphone 1" });
    expect(devices.asked[0]).toMatchObject({ echoCancellation: true, noiseSuppression: true, autoGainControl: true });
  });

  test("does not start without a microphone, and says why", async () => {
    connect();
    devices.refusal = Object.assign(new Error(), { name: "NotAllowedError" });
    await expect(antiphon.startVoice()).rejects.toMatchObject({ code: "denied" });
    expect(antiphon.microphone).toMatchObject({ state: "failed", error: { code: "denied" } });
    expect(said()).toEqual([]);
  });

  test("does not start on a page without HTTPS", async () => {
    vi.stubGlobal("isSecureContext", false);
    await expect(antiphon.startVoice()).rejects.toMatchObject({ code: "insecure" });
  });

  test("sends audio, and whether the assistant is playing", async () => {
    await call();
    hear(QUIET, 20);
    await speak();
    hear(QUIET, 20);
    expect(frames().map((frame) => [frame.length, frame[0]])).toEqual([
      [641, 0],
      [641, 1],
    ]);
  });

  test("sends nothing while muted, and the assistant continues", async () => {
    await call();
    await speak();
    antiphon.mute(true);
    hear(LOUD, 1000);
    expect(frames()).toEqual([]);
    expect([wasFlushed(), antiphon.playing.playing, antiphon.level.input]).toEqual([false, true, LOUD]);
  });

  test("that the user ends stops the microphone and the speech", async () => {
    await call();
    await speak();
    antiphon.endVoice();
    expect(said().at(-1)).toEqual({ type: "end_voice" });
    expect([wasFlushed(), devices.tracks[0]!.isStopped, antiphon.microphone.state]).toEqual([true, true, "off"]);
  });

  test("that the server ends still plays its last words", async () => {
    await call();
    await speak();
    tell("end_voice_session", { reason: "farewell", final_message: null });
    expect([wasFlushed(), devices.tracks[0]!.isStopped, antiphon.mode]).toEqual([false, true, "text"]);
  });

  test.each(["voice_unavailable", "energy_exhausted"])("that the server cannot take (%s) closes the microphone", async (code) => {
    connect();
    await antiphon.startVoice();
    tell("notice", { kind: "warning", text: "No voice here.", code, duration_ms: null });
    expect(antiphon.microphone.state).toBe("off");
  });

  test("continues in a new session if the old one is gone", async () => {
    await call();
    FakeSocket.last.drop();
    vi.advanceTimersByTime(500);
    FakeSocket.last.accept().tell({ type: "state", n: 1, state: "idle" }, introduce(2, { session_id: "s2" }));
    expect(FakeSocket.last.sent[0]).toMatchObject({ mode: "voice" });
    expect(said()).toEqual([{ type: "start_listening" }]);
  });

  test("that is resumed is not started again", async () => {
    await call();
    FakeSocket.last.drop();
    vi.advanceTimersByTime(500);
    FakeSocket.last.accept().tell(introduce(20, { resumed: true, mode: "voice" }));
    expect(said()).toEqual([]);
  });
});

describe("speech over the assistant", () => {
  test("ducks it at once, and the server decides about the rest", async () => {
    await call();
    await speak(3, 800);
    hear(QUIET, 200);
    hear(LOUD, 60);
    expect(antiphon.playing).toMatchObject({ playing: true, ducked: true });
    hear(LOUD, 2000);
    expect([wasFlushed(), antiphon.playing, said("interrupt")]).toMatchObject([false, { playing: true, ducked: true }, []]);
  });

  test("holds it when the server says so, and the microphone is then not said to hear it", async () => {
    await call();
    expect(FakeSocket.last.sent[0]).toMatchObject({ type: "hello", features: ["hold"] });
    await speak(3, 800);
    tell("hold", { turn: 3 });
    expect(antiphon.playing).toMatchObject({ playing: true, held: true });
    hear(LOUD, 20);
    expect(frames().at(-1)![0]).toBe(0);
    tell("resume", { turn: 3 });
    hear(LOUD, 20);
    expect([antiphon.playing.held, wasFlushed(), frames().at(-1)![0]]).toEqual([false, false, 1]);
  });

  test("is left to the server if the caller wants that", async () => {
    antiphon = new Antiphon({ url: "ws://host/ws", bargeIn: false });
    await call();
    await speak();
    hear(LOUD, 1000);
    expect([wasFlushed(), antiphon.playing.ducked]).toEqual([false, false]);
  });

  test("stops it when the server has detected it", async () => {
    await call();
    await speak();
    tell("state", { state: "interrupted" });
    expect([wasFlushed(), said("interrupt")]).toEqual([true, []]);
  });
});

describe("interrupting", () => {
  test("stops playback before the server answers", async () => {
    await call();
    await speak(1, 300);
    antiphon.interrupt();
    expect(wasFlushed()).toBe(true);
    expect(said("interrupt")).toEqual([{ type: "interrupt", played_ms: 300 }]);
  });

  test("also stops an answer that is still being generated", async () => {
    await call();
    tell("state", { state: "processing" });
    antiphon.interrupt();
    expect(said("interrupt")).toEqual([{ type: "interrupt" }]);
  });

  test("sends nothing if nothing is being generated or spoken", async () => {
    await call();
    antiphon.interrupt();
    expect(said("interrupt")).toEqual([]);
  });

  test("happens first when push-to-talk is pressed", async () => {
    await call();
    await speak(1, 300);
    await antiphon.startListening();
    expect(said().slice(-2)).toEqual([{ type: "interrupt", played_ms: 300 }, { type: "start_listening" }]);
  });
});

describe("a server that listens although nobody can be heard", () => {
  /** Push-to-talk is pressed, released and answered. */
  async function ask(): Promise<void> {
    connect();
    await antiphon.startListening();
    tell("state", { state: "listening" });
    antiphon.stopListening();
    vi.advanceTimersByTime(100);
    await speak();
  }
  const lately = (): string[] => said().slice(-2).map(({ type }) => type);

  test("after a push-to-talk answer was interrupted is told to stop listening", async () => {
    await ask();
    antiphon.interrupt();
    tell("state", { state: "interrupted" });
    tell("state", { state: "listening" });
    expect(lately()).toEqual(["interrupt", "stop_listening"]);
  });

  test("keeps listening if the key is pressed again", async () => {
    await ask();
    const pressed = antiphon.startListening();
    tell("state", { state: "interrupted" });
    tell("state", { state: "listening" });
    await pressed;
    expect(lately()).toEqual(["interrupt", "start_listening"]);
  });

  test("keeps listening in a call", async () => {
    await call();
    await speak();
    antiphon.interrupt();
    tell("state", { state: "interrupted" });
    tell("state", { state: "listening" });
    expect(said("stop_listening")).toEqual([]);
  });
});

describe("playback", () => {
  test("reports what was heard, without what is still in the output buffer", async () => {
    await call();
    await speak(1, 480);
    expect(said("playback")).toEqual([{ type: "playback", turn: 1, played_ms: 480 }]);
  });

  test("is done when the last sample was played and the answer is complete", async () => {
    await call();
    await speak(1, 480);
    tell("generation_complete", { turn: 1 });
    player().post({ ended: { turn: 1, playedMs: 600 } });
    expect(said("playback_done")).toEqual([]);
    vi.advanceTimersByTime(20);
    expect(said("playback_done")).toEqual([{ type: "playback_done", turn: 1 }]);
  });

  test("is also done without audio output, after the time it would take", async () => {
    connect();
    vi.stubGlobal("AudioContext", undefined);
    tell("state", { state: "speaking" });
    FakeSocket.last.tellBytes(speechFrame(++n, 1, 0, Array<number>(2205).fill(1)));
    tell("generation_complete", { turn: 1 });
    await settle();
    expect(antiphon.sound.state).toBe("failed");
    expect(said("playback_done")).toEqual([]);
    await vi.advanceTimersByTimeAsync(100);
    expect(said("playback_done")).toEqual([{ type: "playback_done", turn: 1 }]);
  });

  test("also accepts speech in messages", async () => {
    antiphon = new Antiphon({ url: "ws://host/ws", audio: "json" });
    connect();
    tell("audio", { data: btoa("no WAV"), turn: 1, seq: 0, last: false });
    expect(antiphon.playing.playing).toBe(false);
    const wav = `RIFF\x26\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x22\x56\0\0\x44\xac\0\0\x02\0\x10\0data\x02\0\0\0\0\x40`;
    tell("audio", { data: btoa(wav), turn: 1, seq: 0, last: true });
    await settle();
    expect(player().told).toEqual([{ push: { turn: 1, hz: 22_050, samples: Float32Array.of(0.5) } }]);
    player().post({ ended: { turn: 1, playedMs: 1 } });
    vi.advanceTimersByTime(20);
    expect(said("playback_done")).toEqual([{ type: "playback_done", turn: 1 }]);
  });

  test("has the chosen volume", async () => {
    await call();
    await speak();
    antiphon.setVolume(0.5);
    player().post({ position: { turn: 1, playedMs: 600 }, level: 0.2 });
    expect(antiphon.level.output).toBeCloseTo(0.1);
  });

  test("has level 0 after it was stopped, whatever the audio thread still reports", async () => {
    await call();
    await speak();
    antiphon.interrupt();
    player().post({ position: { turn: 1, playedMs: 600 }, level: 0.2 });
    expect(antiphon.level.output).toBe(0);
  });

  test("that the browser blocks is reported, and starts after a gesture", async () => {
    FakeContext.startsAs = "suspended";
    connect();
    FakeSocket.last.tellBytes(speechFrame(++n, 1, 0, [1]));
    await settle();
    expect(antiphon.sound.state).toBe("blocked");
    FakeContext.startsAs = "running";
    window.dispatchEvent(new Event("pointerdown"));
    expect(antiphon.sound.state).toBe("ready");
  });
});

describe("devices", () => {
  test("can be listed, without the duplicates of the default", async () => {
    devices.listed = [
      { kind: "audioinput", deviceId: "default", label: "Default" },
      { kind: "audioinput", deviceId: "m1", label: "Desk" },
      { kind: "audiooutput", deviceId: "o1", label: "Headset" },
      { kind: "videoinput", deviceId: "v1", label: "Camera" },
    ];
    expect(await antiphon.devices()).toEqual({
      inputs: [{ id: "m1", label: "Desk" }],
      outputs: [{ id: "o1", label: "Headset" }],
    });
  });

  test("that are added or removed are reported", async () => {
    const told = vi.fn<(found: AntiphonEvents["devices"]) => void>();
    antiphon.on("devices", told);
    devices.dispatchEvent(new Event("devicechange"));
    await settle();
    expect(told).toHaveBeenCalledWith({ inputs: [], outputs: [] });
  });

  test("can be changed in a call", async () => {
    await call();
    await antiphon.setDevices({ input: "m2", output: "o2" });
    expect(devices.asked[1]).toMatchObject({ deviceId: { ideal: "m2" } });
    expect([devices.tracks[0]!.isStopped, devices.tracks[1]!.isStopped]).toEqual([true, false]);
    expect(FakeContext.last.sinkId).toBe("o2");
    hear(QUIET, 20);
    expect(frames()).toHaveLength(1);
  });

  test("that cannot be opened leave the old one in use", async () => {
    await call();
    devices.refusal = Object.assign(new Error(), { name: "NotReadableError" });
    await expect(antiphon.setDevices({ input: "m2" })).rejects.toMatchObject({ code: "busy" });
    expect([devices.tracks[0]!.isStopped, antiphon.microphone.state]).toEqual([false, "on"]);
  });

  test("that are unplugged are replaced by the default", async () => {
    await antiphon.setDevices({ input: "m2" });
    await call();
    devices.tracks[0]!.onended?.();
    await settle();
    expect(devices.asked[1]).not.toHaveProperty("deviceId");
    expect(antiphon.microphone).toMatchObject({ state: "on", label: "Microphone 2" });
  });

  test("that are unplugged and cannot be replaced are reported", async () => {
    await call();
    devices.refusal = Object.assign(new Error(), { name: "NotFoundError" });
    devices.tracks[0]!.onended?.();
    await settle();
    expect(antiphon.microphone).toMatchObject({ state: "failed", error: { code: "missing" } });
    expect(said().at(-1)).toEqual({ type: "stop_listening" });
  });
});

test("leaving the page ends the session, unless the page may come back", () => {
  connect();
  window.dispatchEvent(Object.assign(new Event("pagehide"), { persisted: true }));
  expect(FakeSocket.last.closedWith).toBeUndefined();
  window.dispatchEvent(Object.assign(new Event("pagehide"), { persisted: false }));
  expect(FakeSocket.last.closedWith).toBe(1000);
});
