import { describe, expect, test } from "vitest";
import { summarizeLatency } from "../../src/view/latency";
import { initialState } from "../../src/view/state";
import { describeAssistant, describeConnection, describeMicrophone } from "../../src/view/words";
import { at, chunk, finalText, NOW, open, outline, see, type Told, whole } from "./told";

/** The example of the wire's first description: no numbers, no ids. */
const EXAMPLE: Told[] = [
  at("idle"),
  at("listening"),
  at("processing"),
  finalText("What's the weather?"),
  chunk("Let me", true),
  chunk(" check"),
  { type: "tool_call", name: "get_weather", args: { location: "here" } },
  { type: "tool_result", name: "get_weather", result: { temperature: 65 } },
  chunk(" It's 65°F..."),
  whole("Let me check It's 65°F and sunny."),
  at("speaking"),
  { type: "audio", data: "UklGRi..." },
  at("listening"),
];

describe("a basic server", () => {
  test("is shown in full", () => {
    const state = see(EXAMPLE);
    expect(outline(state)).toEqual([
      "user final: What's the weather?",
      "assistant final: Let me check",
      "tool done: get_weather",
      "assistant final:  It's 65°F and sunny.",
    ]);
    expect(state.server).toBe("listening");
  });

  test("is told in words at every step", () => {
    const talking = see([{ type: "microphone", microphone: { state: "on", muted: false, label: "" } }]);
    const words = EXAMPLE.map((_, index) => describeAssistant(see(EXAMPLE.slice(0, index + 1), talking)).text);
    expect(words).toEqual([
      "Idle", "Listening", "Thinking", "Thinking", "Thinking", "Thinking", "Using a tool", "Thinking", "Thinking", "Thinking",
      "Speaking", "Speaking", "Listening",
    ]);
  });
});

describe("a session", () => {
  const numbered = EXAMPLE.map((message, index) => ({ ...message, n: index + 1 }));
  const session = (n: number, resumed: boolean): Told => ({
    type: "session", n, resumed, session_id: "s", conversation_id: "c", resume: "h", mode: "text", energy: { voice: 3, text: 2 },
  });

  test("shows nothing twice, whatever is repeated", () => {
    const once = see(numbered);
    expect(see(numbered, once)).toEqual(once);
  });

  test("that is resumed goes on with what was missed", () => {
    const seen = see([...numbered.slice(0, 5), open("resumed")]);
    const state = see([session(40, true), ...numbered], seen);
    expect(outline(state)).toEqual(outline(see(EXAMPLE)));
    expect(state.notices.at(-1)?.code).toBe("resumed");
  });

  test("that is new counts from one again, and says so", () => {
    const state = see([...numbered, open("new", "The handle has expired."), { ...finalText("Hi"), n: 1 }]);
    expect(outline(state).slice(-2)).toEqual(["event: This is a new session. The handle has expired.", "user final: Hi"]);
  });

  test("brings the energy of both pools", () => {
    expect(see([session(2, false)]).energy).toMatchObject({ voice: { level: 3, max: 3 }, text: { level: 2, max: 2 } });
  });

  test("announces that the server goes away, until the page is back", () => {
    const away = see([{ type: "go_away", time_left_ms: 5000, reason: "The server restarts.", resume: "h" }]);
    expect(away.goAway).toEqual({ at: NOW + 5000, reason: "The server restarts." });
    expect(describeConnection({ ...away, connection: { state: "open", session: "first", reason: null } }).text).toBe("Restarting");
    expect(see([open("resumed")], away).goAway).toBeNull();
  });
});

describe("confirmations", () => {
  const request: Told = {
    type: "confirmation_request", confirmation_token: "k", tool: "send", args: { to: "a" }, preview: "Send it.", expires_at: NOW + 9,
  };

  test("are asked once", () => {
    const state = see([request, request]);
    expect(state.confirmations).toHaveLength(1);
    expect(outline(state)).toEqual(["confirmation asked: Send it."]);
  });

  test.each(["approved", "denied", "expired"])("that the server has settled as %s are closed, and stay in the thread", (outcome) => {
    const state = see([request, { type: "confirmation_resolved", confirmation_token: "k", outcome }]);
    expect(state.confirmations).toEqual([]);
    expect(outline(state)).toEqual([`confirmation ${outcome}: Send it.`]);
  });

  test("that were answered are not asked again", () => {
    const state = see([request, { type: "confirmation_answered", token: "k", approved: false }, request]);
    expect(state.confirmations).toEqual([]);
  });

  test("of another session are closed with it", () => {
    expect(see([request, open("new")]).confirmations).toEqual([]);
  });
});

describe("notices and errors", () => {
  test("a notice that has passed stays in the list", () => {
    const told = see([{ type: "notice", kind: "warning", text: "Slow", code: "slow", duration_ms: null }]);
    const passed = see([{ type: "notice_passed", key: told.notices[0]!.key }], told);
    expect(passed.notices).toMatchObject([{ text: "Slow", isToast: false }]);
  });

  test("many at once pass by four at a time", () => {
    const many = Array.from({ length: 9 }, (_, index): Told => ({ type: "notice", kind: "info", text: String(index) }));
    const { notices } = see(many);
    expect(notices.filter(({ isToast }) => isToast).map(({ text }) => text)).toEqual(["5", "6", "7", "8"]);
    expect(notices).toHaveLength(9);
  });

  test("a notice of a kind that is not known is for information", () => {
    expect(see([{ type: "notice", kind: "toString", text: "?" }]).notices[0]?.kind).toBe("info");
  });

  test("an error stands until it is dismissed, and is kept in the list", () => {
    const failed = see([{ type: "error", message: "No model.", code: "model_failed", retryable: true }]);
    expect(failed.error).toMatchObject({ text: "No model.", isRetryable: true });
    expect(see([{ type: "error_dismissed" }], failed)).toMatchObject({ error: null, notices: [{ text: "No model." }] });
  });

  test("an error of a basic server needs no code", () => {
    expect(see([{ type: "error", message: "Failed" }]).error?.text).toBe("Failed");
  });

  test("no voice ends the attempt to talk", () => {
    const state = see([{ type: "talk", talk: "hands_free" }, { type: "notice", kind: "warning", text: "No", code: "voice_unavailable" }]);
    expect(state.talk).toBe("off");
  });
});

describe("the rest", () => {
  test("energy is kept by pool", () => {
    const state = see([{ type: "energy", mode: "voice", level: 1, max: 3, previous: 2, reason: "rate-limit-exceeded", model: "cascade" }]);
    expect(state.energy).toEqual({ voice: { level: 1, max: 3, model: "cascade", reason: "rate-limit-exceeded" }, text: null });
  });

  test("a reminder rings once, and stays in the thread", () => {
    const reminder: Told = { type: "reminder", id: "r", message: "Tea", due: 1 };
    const state = see([reminder, reminder, { type: "reminder_dismissed", id: "r" }]);
    expect(state.reminders).toEqual([]);
    expect(outline(state)).toEqual(["event: Reminder: Tea"]);
  });

  test("a block ends the call and lasts until it is over", () => {
    const blocked = see([{ type: "talk", talk: "hands_free" }, { type: "timeout", until: 9, duration_seconds: 1, message: "Goodbye." }]);
    expect(blocked).toMatchObject({ talk: "off", block: { until: 9, message: "Goodbye." } });
    expect(see([{ type: "block_over" }], blocked).block).toBeNull();
  });

  test("latency has the last and the median of each stage", () => {
    const metrics = [100, 300, 200, 500].map((total_ms): Told => ({ type: "turn_metrics", turn: 1, total_ms, stt_ms: null }));
    const byStage = Object.fromEntries(summarizeLatency(see(metrics).metrics).map((each) => [each.stage, each]));
    expect(byStage["total_ms"]).toMatchObject({ lastMs: 500, medianMs: 250 });
    expect(byStage["stt_ms"]).toMatchObject({ lastMs: null, medianMs: null });
  });

  test("a lost microphone ends the call", () => {
    const state = see([{ type: "talk", talk: "hands_free" }, { type: "microphone", microphone: { state: "off" } }]);
    expect(state.talk).toBe("off");
    expect(describeMicrophone(state).text).toBe("Mic off");
  });

  test("nobody is listened to through a closed microphone", () => {
    expect(describeAssistant(see([at("listening")])).text).toBe("Idle");
  });

  test("the last words of a call are not told twice", () => {
    const end: Told = { type: "end_voice_session", reason: "done", final_message: "Goodbye." };
    expect(outline(see([whole("Goodbye."), end])).at(-1)).toBe("event: The call is over.");
    expect(outline(see([end]))).toEqual(["event: Goodbye."]);
  });

  test("clearing leaves nothing of the thread", () => {
    const state = see([...EXAMPLE, { type: "flyout", flyout_type: "code", content: "x" }, { type: "cleared" }]);
    expect(state).toMatchObject({ items: [], flyouts: [], openFlyout: null });
  });

  test("a state is never changed in place", () => {
    const before = initialState();
    const copy = structuredClone(before);
    see(EXAMPLE, before);
    expect(before).toEqual(copy);
  });
});
