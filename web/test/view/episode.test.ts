import { describe, expect, test } from "vitest";
import type { Connection } from "../../src/client/antiphon";
import type { PageState } from "../../src/view/state";
import { describeConnection } from "../../src/view/format";
import { open, reduceAll, type TestMessage, transcript } from "./messages";

const restart: TestMessage = { type: "go_away", time_left_ms: 5000, reason: "", resume: "h" };
const connection = (now: Connection) => ({ type: "connection", connection: now }) as const;
const waiting = (retryInMs: number) => connection({ state: "waiting", retryInMs, attempt: 1, reason: "lost" });
const connecting = (attempt: number) => connection({ state: "connecting", attempt });
const notice = (code: string, text: string, kind = "info"): TestMessage => ({ type: "notice", kind, text, code, duration_ms: null });
const toasts = (state: PageState) => state.notices.filter(({ isToast }) => isToast);

describe("a restart of the server", () => {
  const events = [open("first"), restart, waiting(900), waiting(100), connecting(1), waiting(1800), connecting(2), open("resumed")];

  test("is one line whose words change", () => {
    const texts = events.map((_, index) => reduceAll(events.slice(0, index + 1)).episode?.text);
    const away = Array.from({ length: 5 }, () => "Reconnecting…");
    expect(texts).toEqual([undefined, "The server is restarting…", ...away, "Back. The conversation goes on."]);
  });

  test("is no new line with every attempt", () => {
    const keys = events.slice(0, 7).map((_, index) => reduceAll(events.slice(0, index + 1)).episode?.key);
    expect(new Set(keys.slice(2)).size).toBe(1);
  });

  test("is the state of the connection until it closes", () => {
    expect(describeConnection(reduceAll(events.slice(0, 2))).text).toBe("Restarting");
    expect(describeConnection(reduceAll(events)).text).toBe("Connected");
  });

  test("shows no toast, and is listed once", () => {
    const state = reduceAll(events);
    expect(toasts(state)).toEqual([]);
    expect(state.notices.map(({ text }) => text)).toEqual(["Back. The conversation goes on."]);
  });

  test("is over when its line was shown long enough", () => {
    const state = reduceAll(events);
    expect(reduceAll([{ type: "episode_seen", key: state.episode!.key }], state).episode).toBeNull();
    expect(reduceAll([{ type: "episode_seen", key: "another" }], state).episode).not.toBeNull();
  });

  test("leaves no line when the connection is closed for good, or opened anew", () => {
    expect(reduceAll([connection({ state: "closed", code: 4409, reason: "" })], reduceAll(events.slice(0, 4))).episode).toBeNull();
    expect(reduceAll([connecting(0)], reduceAll(events.slice(0, 4))).episode).toBeNull();
  });
});

describe("a session that could not be resumed", () => {
  const lost = [open("first"), transcript("Hi"), waiting(900), open("new", "Too old.")];
  const gone: TestMessage = { type: "error", code: "unknown_conversation", message: "You have no such conversation." };

  test("is a new one, with the same conversation", () => {
    const state = reduceAll([...lost, notice("new_session", "Could not resume.", "warning")]);
    expect(state.episode?.text).toBe("This is a new session; the conversation was kept.");
    expect(toasts(state)).toEqual([]);
  });

  test("keeps no conversation if nothing was said", () => {
    expect(reduceAll([open("first"), waiting(900), open("new")]).episode?.text).toBe("This is a new session.");
  });

  test("says so if the server does not have the conversation any more", () => {
    const state = reduceAll([...lost, gone]);
    expect(state.episode?.text).toBe("This is a new session. The server no longer has the conversation.");
    expect(state.error).toBeNull();
  });

  test("is not what an unknown conversation means at other times", () => {
    expect(reduceAll([open("first"), gone]).error?.text).toBe("You have no such conversation.");
  });
});

describe("notices about the model", () => {
  const STEPS = [
    notice("reconnecting", "Reconnecting to the model."), notice("could_not_resume", "Continuing in a new session.", "warning"),
    notice("model_switched", "Rate limited: switching to B.", "warning"), notice("local_model", "The local model answers."),
    notice("new_upstream", "New session, same context.", "success"), notice("reconnected", "The model is back.", "success"),
    notice("energy_exhausted", "No model.", "error"),
  ];

  test("replace each other in the line, and are no toasts", () => {
    const texts = STEPS.map((_, index) => reduceAll([open("first"), ...STEPS.slice(0, index + 1)]).episode?.text);
    expect(texts).toEqual(STEPS.map(({ text }) => text));
    expect(toasts(reduceAll(STEPS))).toEqual([]);
  });

  test("are all kept in the list", () => {
    expect(reduceAll(STEPS).notices.map(({ text }) => text)).toEqual(STEPS.map(({ text }) => text));
  });

  test("that repeat the line are shown and listed once", () => {
    const once = reduceAll([open("first"), STEPS[0]!]);
    expect(reduceAll([STEPS[0]!, STEPS[0]!], once)).toBe(once);
  });

  test("have the colour of their kind", () => {
    const tone = (index: number) => reduceAll([STEPS[index]!]).episode?.tone;
    expect([tone(0), tone(1), tone(4), tone(6)]).toEqual(["calm", "busy", "good", "bad"]);
  });

  test("stay until the model is back while it is being reconnected", () => {
    expect(reduceAll([STEPS[0]!]).episode?.durationMs).toBe(60_000);
    expect(reduceAll([STEPS[5]!]).episode?.durationMs).toBe(4000);
  });

  test("do not replace the line about the connection to the server", () => {
    const state = reduceAll([open("first"), waiting(900), STEPS[2]!]);
    expect(state.episode?.step).toBe("reconnecting");
    expect(state.notices).toHaveLength(1);
  });

  test("other notices are toasts as before", () => {
    const state = reduceAll([open("first"), notice("slow", "Slow today.")]);
    expect(state.episode).toBeNull();
    expect(toasts(state)).toHaveLength(1);
  });
});
