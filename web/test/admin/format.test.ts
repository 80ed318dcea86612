import { describe, expect, test } from "vitest";
import type { Latency } from "../../src/admin/api";
import {
  count, describeEnergy, describeOutcome, describeRun, describeRung, describeSession, formatDuration, formatMs, formatTime, matches, shortId,
  stagesOf, toLocal, toMs,
} from "../../src/admin/format";

const AT = new Date(2031, 4, 4, 9, 5, 7).getTime();

describe("times", () => {
  test("of today have no day", () => {
    expect(formatTime(AT, AT + 3_600_000)).toBe(new Date(AT).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" }));
  });

  test("of another day have one, and of another year the year", () => {
    expect(formatTime(AT, AT + 48 * 3_600_000)).toMatch(/4/);
    expect(formatTime(AT, AT + 48 * 3_600_000)).not.toMatch(/2031/);
    expect(formatTime(AT, new Date(2033, 0, 1).getTime())).toMatch(/2031/);
  });

  test("of a field are those of the viewer, both ways", () => {
    expect(toMs("2031-05-04T09:05")).toBe(String(new Date(2031, 4, 4, 9, 5).getTime()));
    expect(toLocal(toMs("2031-05-04T09:05"))).toBe("2031-05-04T09:05");
  });

  test("that are not times are empty", () => {
    expect([toMs(""), toMs("soon"), toLocal(undefined), toLocal(""), toLocal("soon")]).toEqual(["", "", "", "", ""]);
  });
});

test.each([
  [null, ""], [undefined, ""], [0, "0 ms"], [1.14, "1.1 ms"], [742.8, "743 ms"], [2214, "2.2 s"], [59_000, "59 s"], [61_000, "1 min 1 s"],
])("%s milliseconds are %s", (ms, text) => {
  expect(formatMs(ms)).toBe(text);
});

test.each([[0, "0 s"], [42_400, "42 s"], [60_000, "1 min"], [3_723_000, "1 h 2 min 3 s"]])("a duration of %i is %s", (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

test("long ids are shortened, and counts have their noun", () => {
  expect([shortId("c04f7be2d1904a66"), shortId("s1")]).toEqual(["c04f7be2", "s1"]);
  expect([count(1, "session"), count(0, "session")]).toEqual(["1 session", "0 sessions"]);
});

test.each([
  [{ connected: true, held: true, stored: true }, "Connected"],
  [{ connected: true, held: true, stored: false }, "Connected, silent"],
  [{ connected: false, held: true, stored: true }, "Parked"],
  [{ connected: null, held: true, stored: true }, "On another node"],
  [{ connected: false, held: false, stored: true }, "Stored"],
])("a session %o is %s", (session, text) => {
  expect(describeSession(session).text).toBe(text);
});

test.each([
  [{ outcome: "ok" }, "ok", "good"],
  [{ outcome: "NOT_FOUND" }, "not found", "bad"],
  [{ outcome: "CONFIRMATION_REQUIRED" }, "asked first", "busy"],
  [{ outcome: "event" }, "event", "calm"],
  [{ outcome: null, ok: true }, "ok", "good"],
  [{ outcome: null, ok: false }, "failed", "bad"],
  [{}, "unknown", "calm"],
])("an outcome %o is %s", (run, text, tone) => {
  expect(describeOutcome(run)).toEqual({ text, tone });
});

test("what else is known about a call is told in a few words", () => {
  expect(describeRun({ confirmation: "approved", cache_hit: true })).toBe("approved by the user · repeated delivery");
  expect(describeRun({ event: "confirmation", confirmation: "denied" })).toBe("denied by the user");
  expect(describeRun({ event: "admin_read_conversation" })).toBe("admin read conversation");
  expect(describeRun({})).toBe("");
});

test("only the parts of a latency that happened are shown", () => {
  const latency: Latency = { kind: "latency", at_ms: 0, end_of_turn_ms: null, first_token_ms: 120, first_audio_ms: 30, stt_ms: 9 };
  expect(stagesOf(latency)).toEqual([{ name: "first word", ms: 120 }, { name: "first sound", ms: 30 }]);
});

test("a change of energy says from where to where, and why", () => {
  const change = { kind: "energy", at_ms: 0, mode: "voice", level: 2, previous: 3, max: 3, reason: "rate-limit-exceeded", model: "cascade" } as const;
  expect(describeEnergy(change)).toBe("Energy of voice lowered from 3 to 2 of 3 (rate limit exceeded): cascade");
  expect(describeEnergy({ ...change, level: 3, previous: 2, reason: "manual", model: null })).toBe("Energy of voice raised from 2 to 3 of 3 (set by hand)");
});

test("a rung is ready, waits, or cannot be reached", () => {
  const rung = { level: 1, model: "m", resumable: false, fallback: false, cooling_s: 0, reachable: true };
  expect([rung, { ...rung, cooling_s: 3.2 }, { ...rung, reachable: false }].map((each) => describeRung(each).text)).toEqual([
    "Ready", "Rate-limited, 4 s", "Not reachable",
  ]);
});

test("a filter finds rows that have all of its words", () => {
  expect(matches("", "anything")).toBe(true);
  expect(matches("ANA voice", "ana", "voice", null)).toBe(true);
  expect(matches("ana text", "ana", "voice")).toBe(false);
});
