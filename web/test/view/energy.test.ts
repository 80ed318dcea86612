import { describe, expect, test } from "vitest";
import { describeLevel, describeWait, findExhausted, findLow } from "../../src/view/energy";
import type { LocalEvent } from "../../src/view/reduce";
import { NOW, reduceAll, type TestMessage } from "./messages";

const energy = (level: number, changed: Record<string, unknown> = {}): TestMessage => ({
  type: "energy", mode: "voice", level, max: 3, previous: 3, reason: "rate-limit-exceeded", model: "b", resumable: true,
  requires_fallback: false, again_in_s: 40, ...changed,
});
const session = (voice: number, text: number): TestMessage => ({
  type: "session", session_id: "s", conversation_id: "c", resume: "h", resumed: false, mode: "text", energy: { voice, text },
});
const inCall = { type: "talk", talk: "hands_free" } as const;
const words = (message: TestMessage, leftS: number | null) => {
  const pool = reduceAll([message]).energy.voice!;
  return [describeLevel(pool), describeWait("voice", pool, leftS)].filter((text) => text !== "").join(", ");
};

describe("the quality of a model", () => {
  test.each([
    [energy(2), 40, "2 of 3, rate-limited, back in 40 s"],
    [energy(2), 0, "2 of 3, rate-limited, better again with your next call"],
    [energy(2), null, "2 of 3, rate-limited"],
    [energy(2, { reason: "session-reset" }), 7, "2 of 3, back in 7 s"],
    [energy(1, { reason: "manual" }), null, "1 of 3, set by the operator"],
    [energy(3, { reason: "session-reset" }), null, "3 of 3"],
    [energy(2), 119, "2 of 3, rate-limited, back in 119 s"],
    [energy(2), 121, "2 of 3, rate-limited, back in 3 min"],
    [energy(2), 80_000, "2 of 3, rate-limited, back in 23 h"],
  ])("is described in words", (message, leftS, expected) => {
    expect(words(message, leftS)).toBe(expected);
  });

  test("is back in a new conversation for text", () => {
    const pool = reduceAll([energy(1, { mode: "text", max: 2 })]).energy.text!;
    expect(describeWait("text", pool, 0)).toBe("better again in a new conversation");
  });

  test.each([[40, "Try again in 40 s."], [0, "You can try again now."], [null, ""]])("that is exhausted is awaited", (leftS, expected) => {
    expect(describeWait("voice", reduceAll([energy(0)]).energy.voice!, leftS)).toBe(expected);
  });

  test("recovers at a time of the page's clock", () => {
    expect(reduceAll([energy(2)]).energy.voice?.betterAt).toBe(NOW + 40_000);
    expect(reduceAll([energy(2, { again_in_s: null })]).energy.voice?.betterAt).toBeNull();
  });

  test("of a basic server needs no time", () => {
    const { again_in_s: _, ...basic } = energy(2);
    expect(reduceAll([basic as TestMessage]).energy.voice?.betterAt).toBeNull();
  });
});

describe("the levels of a session", () => {
  test("keep what is known of a level that has not changed", () => {
    const state = reduceAll([energy(2), session(2, 2)]);
    expect(state.energy.voice).toMatchObject({ level: 2, reason: "rate-limit-exceeded", model: "b" });
  });

  test("forget it if the level has changed", () => {
    expect(reduceAll([energy(2), session(3, 2)]).energy.voice).toEqual({ level: 3, max: 3, model: null, reason: null, betterAt: null });
  });

  test("are left alone by a server that does not report them", () => {
    const state = reduceAll([energy(2)]);
    expect(reduceAll([{ ...session(3, 2), energy: null }], state).energy).toEqual(state.energy);
  });
});

describe("the report of the server", () => {
  const rung = (level: number, model: string, cooling_s = 0) => ({ level, model, cooling_s });
  const ladder = (mode: "voice" | "text", best: number, ...rungs: ReturnType<typeof rung>[]) => ({ mode, max: rungs.length, best, rungs });
  const report = (...ladders: ReturnType<typeof ladder>[]): LocalEvent => ({ type: "energy_reported", report: { ladders, sessions: [] } });

  test("says which models there are, and how many", () => {
    const state = reduceAll([session(2, 1), report(ladder("voice", 2, rung(2, "a"), rung(1, "b")), ladder("text", 1, rung(1, "c")))]);
    expect(state.energy).toEqual({
      voice: { level: 2, max: 2, model: "a", reason: null, betterAt: null }, text: { level: 1, max: 1, model: "c", reason: null, betterAt: null },
    });
    expect(findLow(state, NOW)).toBeNull();
  });

  test("says which model waits, and until when", () => {
    const state = reduceAll([session(1, 1), inCall, report(ladder("voice", 1, rung(2, "a", 25), rung(1, "b")))]);
    expect(state.energy.voice).toEqual({ level: 1, max: 2, model: "b", reason: "rate-limit-exceeded", betterAt: NOW + 25_000 });
    expect(findLow(state, NOW)).toBe("voice");
  });

  test("names the model that the session really uses, and its level", () => {
    const own = { session_id: "s", mode: "voice" as const, voice: 1, text: 2, model: "b" };
    const ladders = [ladder("voice", 2, rung(2, "a"), rung(1, "b"))];
    const state = reduceAll([session(2, 2), { type: "energy_reported", report: { ladders, sessions: [{ ...own, session_id: "x", voice: 0 }, own] } }]);
    expect(state.energy.voice).toMatchObject({ level: 1, model: "b" });
  });

  test("does not change why a level was set", () => {
    const state = reduceAll([energy(2, { reason: "manual", again_in_s: null }), report(ladder("voice", 3, rung(3, "a"), rung(2, "b"), rung(1, "c")))]);
    expect(state.energy.voice).toMatchObject({ level: 2, reason: "manual", betterAt: null });
  });
});

describe("the warning", () => {
  test("is about the mode in use", () => {
    const both = [energy(2), energy(1, { mode: "text", max: 2 })];
    expect(findLow(reduceAll([inCall, ...both]), NOW)).toBe("voice");
    expect(findLow(reduceAll(both), NOW)).toBe("text");
  });

  test("is about the other mode until that has recovered", () => {
    expect(findLow(reduceAll([energy(2)]), NOW)).toBe("voice");
    expect(findLow(reduceAll([energy(2)]), NOW + 41_000)).toBeNull();
  });

  test("stays about a mode that has no model at all, if nobody knows for how long", () => {
    expect(findLow(reduceAll([energy(0, { again_in_s: null })]), NOW)).toBe("voice");
    expect(findLow(reduceAll([energy(1, { again_in_s: null })]), NOW)).toBeNull();
  });

  test("is a line at first if the voice has become unavailable for want of a model", () => {
    const told: TestMessage = { type: "notice", kind: "warning", text: "No voice.", code: "voice_unavailable", duration_ms: null };
    expect(reduceAll([inCall, energy(0), told])).toMatchObject({ talk: "off", episode: { code: "energy_exhausted" } });
    expect(reduceAll([inCall, energy(0), told, energy(3)]).episode).toBeNull();
    expect(reduceAll([inCall, energy(1), told])).toMatchObject({ talk: "off", episode: null });
  });

  test("stays in a call whose model is not the best one", () => {
    expect(findLow(reduceAll([inCall, energy(2)]), NOW + 41_000)).toBe("voice");
  });

  test("is not given at full quality, nor for levels that nobody has explained", () => {
    expect(findLow(reduceAll([inCall, energy(3)]), NOW)).toBeNull();
    expect(findLow(reduceAll([inCall, session(1, 1)]), NOW)).toBeNull();
  });

  test("is not given while the line says that there is no model", () => {
    const told: TestMessage = { type: "notice", kind: "error", text: "None.", code: "energy_exhausted", duration_ms: null };
    expect(findLow(reduceAll([inCall, energy(0), told]), NOW)).toBeNull();
    expect(reduceAll([inCall, energy(0), told]).talk).toBe("off");
  });

  test("names the mode that has no model at all", () => {
    expect(findExhausted(reduceAll([energy(0)]))).toBe("voice");
    expect(findExhausted(reduceAll([energy(0), energy(0, { mode: "text" })]))).toBe("text");
    expect(findExhausted(reduceAll([energy(1)]))).toBeNull();
  });
});
