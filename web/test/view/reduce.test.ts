import { describe, expect, test } from "vitest";
import { summarizeLatency } from "../../src/view/latency";
import { initialState } from "../../src/view/state";
import { describeAssistant, describeConnection, describeMicrophone, describePause } from "../../src/view/format";
import { serverState, chunk, transcript, NOW, open, outline, reduceAll, type TestMessage, response } from "./messages";

/** A session with a basic server, which sends no numbers and no ids. */
const EXAMPLE: TestMessage[] = [
  serverState("idle"),
  serverState("listening"),
  serverState("processing"),
  transcript("What's the weather?"),
  chunk("Let me", true),
  chunk(" check"),
  { type: "tool_call", name: "get_weather", args: { location: "here" } },
  { type: "tool_result", name: "get_weather", result: { temperature: 65 } },
  chunk(" It's 65°F..."),
  response("Let me check It's 65°F and sunny."),
  serverState("speaking"),
  { type: "audio", data: "UklGRi..." },
  serverState("listening"),
];

const WAITING = { state: "waiting", retryInMs: 900, attempt: 1, reason: "lost" } as const;

describe("a basic server", () => {
  test("is shown in full", () => {
    const state = reduceAll(EXAMPLE);
    expect(outline(state)).toEqual([
      "user final: What's the weather?",
      "assistant final: Let me check",
      "tool done: get_weather",
      "assistant final:  It's 65°F and sunny.",
    ]);
    expect(state.server).toBe("listening");
  });

  test("is described at every step", () => {
    const talking = reduceAll([{ type: "microphone", microphone: { state: "on", muted: false, label: "" } }]);
    const words = EXAMPLE.map((_, index) => describeAssistant(reduceAll(EXAMPLE.slice(0, index + 1), talking)).text);
    expect(words).toEqual([
      "Idle", "Listening", "Thinking", "Thinking", "Thinking", "Thinking", "Using a tool", "Thinking", "Thinking", "Thinking",
      "Speaking", "Speaking", "Listening",
    ]);
  });
});

describe("a session", () => {
  const numbered = EXAMPLE.map((message, index) => ({ ...message, n: index + 1 }));
  const session = (n: number, resumed: boolean): TestMessage => ({
    type: "session", n, resumed, session_id: "s", conversation_id: "c", resume: "h", mode: "text", energy: { voice: 3, text: 2 },
  });

  test("shows nothing twice, whatever is replayed", () => {
    const once = reduceAll(numbered);
    expect(reduceAll(numbered, once)).toEqual(once);
  });

  test("that is resumed continues with what was missed", () => {
    const seen = reduceAll([...numbered.slice(0, 5), open("resumed")]);
    const state = reduceAll([session(40, true), ...numbered], seen);
    expect(outline(state)).toEqual(outline(reduceAll(EXAMPLE)));
    expect(state.notices.at(-1)?.code).toBe("resumed");
  });

  test("that is new counts from 1 again, and is announced", () => {
    const state = reduceAll([...numbered, open("new", "The handle has expired."), { ...transcript("Hi"), n: 1 }]);
    expect(outline(state).at(-1)).toBe("user final: Hi");
    expect(state.episode?.text).toBe("This is a new session; the conversation was kept.");
  });

  test("has the energy of both pools", () => {
    expect(reduceAll([session(2, false)]).energy).toMatchObject({ voice: { level: 3, max: 3 }, text: { level: 2, max: 2 } });
  });

});

describe("confirmations", () => {
  const request: TestMessage = {
    type: "confirmation_request", confirmation_token: "k", tool: "send", args: { to: "a" }, preview: "Send it.", expires_at: NOW + 9,
  };

  test("are shown once", () => {
    const state = reduceAll([request, request]);
    expect(state.confirmations).toHaveLength(1);
    expect(outline(state)).toEqual(["tool waiting: send"]);
  });

  test.each([
    ["approved", "approved"],
    ["denied", "declined"],
    ["expired", "expired"],
  ])("that the server resolves as %s are closed, and their card says so", (outcome, status) => {
    const state = reduceAll([request, { type: "confirmation_resolved", confirmation_token: "k", outcome }]);
    expect(state.confirmations).toEqual([]);
    expect(outline(state)).toEqual([`tool ${status}: send`]);
  });

  const call: TestMessage = { type: "tool_call", id: "a", name: "send", args: { to: "a" } };
  const refusal: TestMessage = {
    type: "tool_result", id: "a", name: "send", ok: false, duration_ms: 6, result: { error: { type: "CONFIRMATION_REQUIRED" } },
  };
  const sent: TestMessage = { type: "tool_result", id: "a", name: "send", ok: true, duration_ms: 9, result: { sent: true } };

  test.each([
    [[call, { ...request, id: "a" }, refusal]],
    [[call, refusal, { ...request, id: "a" }]],
    [[call, request, { ...refusal, id: null }]],
  ])("belong to the card of their call, in any order", (messages) => {
    expect(outline(reduceAll(messages))).toEqual(["tool waiting: send"]);
  });

  test("that are repeated with another token use that one", () => {
    const state = reduceAll([call, { ...request, id: "a" }, { ...request, id: "a", confirmation_token: "k2" }]);
    expect(state.confirmations.map(({ token }) => token)).toEqual(["k2"]);
    expect(outline(reduceAll([{ type: "confirmation_resolved", confirmation_token: "k2", outcome: "approved" }, sent], state))).toEqual([
      "tool done: send",
    ]);
  });

  test("are done if the result arrives before the resolution", () => {
    const settled: TestMessage = { type: "confirmation_resolved", confirmation_token: "k", outcome: "approved" };
    expect(outline(reduceAll([call, { ...request, id: "a" }, refusal, sent, settled]))).toEqual(["tool done: send"]);
  });

  test("stay declined, whatever error the refused call reports", () => {
    const refused: TestMessage = { ...sent, ok: false, result: { error: { type: "PERMANENT" } } };
    const denied: TestMessage = { type: "confirmation_resolved", confirmation_token: "k", outcome: "denied" };
    expect(outline(reduceAll([call, { ...request, id: "a" }, refusal, denied, refused]))).toEqual(["tool declined: send"]);
  });

  test("that were answered are not shown again", () => {
    const state = reduceAll([request, { type: "confirmation_answered", token: "k", approved: false }, request]);
    expect(state.confirmations).toEqual([]);
  });

  test("stay open when the history of their conversation arrives", () => {
    const calls = [{ id: "a", name: "send", args: {}, result: { error: { type: "CONFIRMATION_REQUIRED" } }, ok: false }];
    const history: TestMessage = { type: "history", conversation_id: "c", turns: [{ role: "assistant", content: "Shall I?", calls }] };
    const session: TestMessage = { type: "session", conversation_id: "c", resumed: true, resume: "h", mode: "text" };
    const state = reduceAll([session, call, { ...request, id: "a" }, refusal, history]);
    expect(outline(state)).toEqual(["tool waiting: send", "assistant final: Shall I?"]);
    expect(state.confirmations.map(({ token }) => token)).toEqual(["k"]);
    expect(reduceAll([{ ...history, conversation_id: "other" }], state).confirmations).toEqual([]);
  });

  test("of another session are closed", () => {
    const state = reduceAll([request, open("new")]);
    expect(state.confirmations).toEqual([]);
    expect(outline(state)[0]).toBe("tool expired: send");
  });
});

describe("a message that is typed during an answer", () => {
  const queued = (...texts: string[]): TestMessage => ({ type: "queued", messages: texts.map((text) => ({ id: text, text })) });
  const said = (text: string) => ({ type: "message_typed", text }) as const;
  const busy: TestMessage = { type: "error", code: "busy", message: "Too many.", retryable: true };
  const streaming = reduceAll([open("first"), serverState("processing"), transcript("One?"), chunk("Well, ", true)]);

  test("is queued below the thread, and does not split the answer", () => {
    const state = reduceAll([said("Two?"), chunk("it "), queued("Two?"), chunk("is."), response("Well, it is.")], streaming);
    expect(outline(state)).toEqual(["user final: One?", "assistant final: Well, it is."]);
    expect(state.queue).toEqual([{ id: "Two?", text: "Two?" }]);
  });

  test("is being sent again when the server takes it from the queue", () => {
    const state = reduceAll([said("Two?"), queued("Two?"), response("Well."), queued(), transcript("Two?"), serverState("idle")], streaming);
    expect(outline(state).at(-1)).toBe("user final: Two?");
    expect(state.items).toHaveLength(3);
  });

  test("is marked as unsent if an interruption from elsewhere emptied the queue", () => {
    const state = reduceAll([said("Two?"), queued("Two?"), queued(), serverState("interrupted"), serverState("listening")], streaming);
    expect(state.items.at(-1)).toMatchObject({ status: "unsent", reason: "Not sent: the answer was interrupted." });
    expect(state.draft).toBe("");
  });

  test("returns to the message box if the user removed it", () => {
    const state = reduceAll([said("Two?"), queued("Two?"), { type: "unqueue_requested", ids: ["Two?"] }, queued()], streaming);
    expect(state).toMatchObject({ draft: "Two?", queue: [], unqueuing: [] });
    expect(outline(state)).toEqual(["user final: One?", "assistant streaming: Well, "]);
  });

  test("the same text twice is queued twice", () => {
    const state = reduceAll([said("Two?"), said("Two?"), { type: "queued", messages: [{ id: "a", text: "Two?" }] }], streaming);
    expect(outline(state).slice(2)).toEqual(["user sending: Two?"]);
  });

  test("returns to the message box if the queue is full, and of several the oldest was rejected", () => {
    const state = reduceAll([said("Two?"), said("Three?"), busy], streaming);
    expect(state.draft).toBe("Two?");
    expect(state.error?.text).toBe("Too many.");
    expect(outline(state).at(-1)).toBe("user sending: Three?");
  });

  test("is marked as unsent if the session is lost, unless it was typed without a connection", () => {
    const lost = reduceAll([said("Two?"), queued("Two?"), said("Three?"), { type: "connection", connection: WAITING }], streaming);
    const state = reduceAll([said("Four?"), open("new", "Gone.")], lost);
    expect(outline(state).slice(2, 5)).toEqual(["user unsent: Three?", "user sending: Four?", "user unsent: Two?"]);
  });

  test("and was rejected is still there when the history arrives", () => {
    const lost = reduceAll([said("Two?"), queued("Two?"), open("new", "Gone.")], streaming);
    const state = reduceAll([{ type: "history", conversation_id: "c", turns: [] }], lost);
    expect(outline(state)).toEqual(["user unsent: Two?"]);
  });
});

describe("a question without an answer", () => {
  const failed: TestMessage = { type: "error", code: "model_failed", message: "No model.", retryable: true };

  test("shows the reason, which is listed and shown nowhere else", () => {
    const state = reduceAll([serverState("processing"), transcript("One?"), chunk("Well", true), failed, serverState("idle")]);
    expect(outline(state)).toEqual(["user failed: One?", "assistant dropped: Well"]);
    expect(state.error).toBeNull();
    expect(state.notices).toMatchObject([{ text: "No model.", isToast: false }]);
  });

  test("is moved to the end when it is retried", () => {
    const state = reduceAll([transcript("One?"), failed, transcript("Two?"), response("Yes.")]);
    const { key } = state.items[0]!;
    expect(outline(reduceAll([{ type: "message_retried", key }, transcript("One?")], state))).toEqual([
      "user final: Two?", "assistant final: Yes.", "user final: One?",
    ]);
  });

  test("does not mark a question that was answered before", () => {
    const state = reduceAll([transcript("One?"), response("Yes."), failed]);
    expect(outline(state)[0]).toBe("user final: One?");
    expect(state.error?.text).toBe("No model.");
  });

  test("that was rejected says so until it is accepted after all", () => {
    const refused = reduceAll([{ type: "message_typed", text: "One?" }, { ...failed, code: "unavailable" }]);
    expect(outline(refused)).toEqual(["user unsent: One?"]);
    expect(outline(reduceAll([transcript("One?")], refused))).toEqual(["user final: One?"]);
  });
});

describe("without a connection", () => {
  const inCall = reduceAll([
    open("first"), { type: "microphone", microphone: { state: "on", muted: false, label: "" } }, { type: "talk", talk: "hands_free" }, serverState("listening"),
  ]);

  test("the microphone is on hold, and no status is good", () => {
    const lost = reduceAll([{ type: "connection", connection: WAITING }], inCall);
    const states = [describeConnection, describeMicrophone, describeAssistant].map((describe) => describe(lost));
    expect(states).toEqual([
      { text: "Reconnecting…", tone: "busy" }, { text: "Mic paused", tone: "busy" }, { text: "Call on hold", tone: "busy" },
    ]);
  });

  test("that answers, nobody is said to be heard", () => {
    const stalled = reduceAll([{ type: "stalled", isStalled: true }], inCall);
    expect([describeConnection, describeMicrophone].map((describe) => describe(stalled).text)).toEqual(["No answer", "Mic paused"]);
    expect(describePause(stalled)).toBe("Mic paused, the server does not answer");
    expect(describePause(reduceAll([{ type: "stalled", isStalled: false }], stalled))).toBeNull();
  });

  test("a refused token is distinguished from a missing one", () => {
    const closed = { state: "closed", code: 4401, reason: "" } as const;
    expect(describeConnection(reduceAll([{ type: "connection", connection: closed, hasToken: false }])).text).toBe("Token required");
    expect(describeConnection(reduceAll([{ type: "connection", connection: closed, hasToken: true }])).text).toBe("Wrong token");
  });
});

describe("notices and errors", () => {
  test("a notice that has disappeared stays in the list", () => {
    const shown = reduceAll([{ type: "notice", kind: "warning", text: "Slow", code: "slow", duration_ms: null }]);
    const dismissed = reduceAll([{ type: "notice_dismissed", key: shown.notices[0]!.key }], shown);
    expect(dismissed.notices).toMatchObject([{ text: "Slow", isToast: false }]);
  });

  test("at most four toasts are shown at a time", () => {
    const many = Array.from({ length: 9 }, (_, index): TestMessage => ({ type: "notice", kind: "info", text: String(index) }));
    const { notices } = reduceAll(many);
    expect(notices.filter(({ isToast }) => isToast).map(({ text }) => text)).toEqual(["5", "6", "7", "8"]);
    expect(notices).toHaveLength(9);
  });

  test("a notice of an unknown kind is shown as information", () => {
    expect(reduceAll([{ type: "notice", kind: "toString", text: "?" }]).notices[0]?.kind).toBe("info");
  });

  test("an error stays until it is dismissed, and is kept in the list", () => {
    const failed = reduceAll([{ type: "error", message: "No model.", code: "model_failed", retryable: true }]);
    expect(failed.error).toMatchObject({ text: "No model.", isRetryable: true });
    expect(reduceAll([{ type: "error_dismissed" }], failed)).toMatchObject({ error: null, notices: [{ text: "No model." }] });
  });

  test("an error of a basic server needs no code", () => {
    expect(reduceAll([{ type: "error", message: "Failed" }]).error?.text).toBe("Failed");
  });

  test("an unavailable voice ends the attempt to talk", () => {
    const state = reduceAll([{ type: "talk", talk: "hands_free" }, { type: "notice", kind: "warning", text: "No", code: "voice_unavailable" }]);
    expect(state.talk).toBe("off");
  });
});

describe("other messages", () => {
  test("energy is kept by pool", () => {
    const state = reduceAll([{ type: "energy", mode: "voice", level: 1, max: 3, previous: 2, reason: "rate-limit-exceeded", model: "cascade" }]);
    const voice = { level: 1, max: 3, model: "cascade", reason: "rate-limit-exceeded", betterAt: null };
    expect(state.energy).toEqual({ voice, text: null });
  });

  test("the title of a tool is on its card and in the question about it", () => {
    const state = reduceAll([
      { type: "tool_call", id: "a", name: "ha_control", title: "Control a device", args: {} },
      { type: "confirmation_request", id: "a", confirmation_token: "k", tool: "ha_control", args: {}, preview: "Unlock?", expires_at: 9 },
    ]);
    expect(state.items[0]).toMatchObject({ title: "Control a device", status: "waiting" });
    expect(state.confirmations[0]).toMatchObject({ title: "Control a device" });
  });

  test("the sources of an answer belong to its last segment", () => {
    const citations = [{ id: "r1", title: "Wifi", url: null }];
    const state = reduceAll([
      chunk("One. ", true),
      { type: "tool_call", id: "a", name: "kb_search", args: {} },
      chunk("Two."),
      { ...response("One. Two."), citations },
    ]);
    const answers = state.items.filter((item) => item.kind === "assistant");
    expect(answers.map((item) => item.citations)).toEqual([[], citations]);
  });

  test("a server that sends no sources is understood", () => {
    expect(reduceAll([response("Hello")]).items[0]).toMatchObject({ citations: [] });
  });

  test("a block ends the call and lasts until its time is up", () => {
    const blocked = reduceAll([{ type: "talk", talk: "hands_free" }, { type: "timeout", until: 9, duration_seconds: 1, message: "Goodbye." }]);
    expect(blocked).toMatchObject({ talk: "off", block: { until: 9, message: "Goodbye." } });
    expect(reduceAll([{ type: "block_ended" }], blocked).block).toBeNull();
  });

  test("latency has the last and the median of each stage", () => {
    const metrics = [100, 300, 200, 500].map((total_ms): TestMessage => ({ type: "turn_metrics", turn: 1, total_ms, end_of_turn_ms: 9 }));
    const byStage = Object.fromEntries(summarizeLatency(reduceAll(metrics).metrics).map((each) => [each.stage, each]));
    expect(byStage["total_ms"]).toMatchObject({ lastMs: 500, medianMs: 250 });
    expect(byStage["stt_ms"]).toMatchObject({ lastMs: null, medianMs: null });
  });

  test("a lost microphone ends the call", () => {
    const state = reduceAll([{ type: "talk", talk: "hands_free" }, { type: "microphone", microphone: { state: "off" } }]);
    expect(state.talk).toBe("off");
    expect(describeMicrophone(state).text).toBe("Mic off");
  });

  test("the assistant is not shown as listening through a closed microphone", () => {
    expect(describeAssistant(reduceAll([serverState("listening")])).text).toBe("Idle");
  });

  test("the last words of a call are not shown twice", () => {
    const end: TestMessage = { type: "end_voice_session", reason: "done", final_message: "Goodbye." };
    expect(outline(reduceAll([response("Goodbye."), end])).at(-1)).toBe("event: Call ended.");
    expect(outline(reduceAll([end]))).toEqual(["event: Goodbye."]);
  });

  test("clearing empties the thread", () => {
    const state = reduceAll([...EXAMPLE, { type: "flyout", flyout_type: "code", content: "x" }, { type: "cleared" }]);
    expect(state).toMatchObject({ items: [], flyouts: [], openFlyout: null });
  });

  test("a state is never changed in place", () => {
    const before = initialState();
    const copy = structuredClone(before);
    reduceAll(EXAMPLE, before);
    expect(before).toEqual(copy);
  });
});
