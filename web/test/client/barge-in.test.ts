import { describe, expect, test } from "vitest";

import { createBargeIn, createVoiceGate, type Verdict } from "../../src/client/barge-in";

const FRAME_MS = 20;
const ROOM = 0.002;
const VOICE = 0.06;

/** The verdicts for these periods of loudness, in ms, while the assistant speaks. */
function listen(...periods: [rms: number, ms: number][]): [Verdict, number][] {
  const gate = createVoiceGate();
  const bargeIn = createBargeIn();
  const verdicts: [Verdict, number][] = [];
  let atMs = 0;
  for (const [rms, ms] of periods) {
    for (let heardMs = 0; heardMs < ms; heardMs += FRAME_MS) {
      atMs += FRAME_MS;
      const verdict = bargeIn.process(gate.process(rms, FRAME_MS, true), FRAME_MS, true);
      if (verdict !== null) verdicts.push([verdict, atMs]);
    }
  }
  return verdicts;
}

describe("over the assistant's speech", () => {
  test("room noise changes nothing", () => {
    expect(listen([ROOM, 10_000])).toEqual([]);
  });

  test("speech ducks it after 60 ms and leaves the rest to the server", () => {
    expect(listen([ROOM, 1000], [VOICE, 5000])).toEqual([["duck", 1060]]);
  });

  test("a cough ducks it for a moment", () => {
    expect(listen([ROOM, 1000], [VOICE, 200], [ROOM, 1000])).toEqual([
      ["duck", 1060],
      ["release", 1500],
    ]);
  });

  test("a click changes nothing", () => {
    expect(listen([ROOM, 1000], [VOICE, 40], [ROOM, 1000])).toEqual([]);
  });

  test("it stays ducked in the pauses between syllables", () => {
    const verdicts = listen([ROOM, 1000], [VOICE, 140], [ROOM, 160], [VOICE, 140], [ROOM, 600]);
    expect(verdicts.map(([verdict]) => verdict)).toEqual(["duck", "release"]);
  });

  test("its residual echo does not count as speech", () => {
    expect(listen([0.02, 3000])).toEqual([]);
  });

  test("steady noise is learned, and a voice above it is still detected", () => {
    expect(listen([0.01, 30_000], [0.12, 500]).map(([verdict]) => verdict)).toEqual(["duck"]);
  });
});

test("there is nothing to duck while the assistant is silent", () => {
  const bargeIn = createBargeIn();
  expect(Array.from({ length: 50 }, () => bargeIn.process(true, FRAME_MS, false))).toEqual(Array(50).fill(null));
});

test("speech that started before the assistant's counts from when the assistant started", () => {
  const bargeIn = createBargeIn();
  for (let i = 0; i < 50; i++) bargeIn.process(true, FRAME_MS, false);
  expect(bargeIn.process(true, FRAME_MS, true)).toBeNull();
});

test("the gate shows speech for a moment after the last loud frame", () => {
  const gate = createVoiceGate();
  expect(gate.speech).toBe(false);
  gate.process(VOICE, FRAME_MS, false);
  for (let i = 0; i < 9; i++) gate.process(ROOM, FRAME_MS, false);
  expect(gate.speech).toBe(true);
  gate.process(ROOM, FRAME_MS, false);
  expect(gate.speech).toBe(false);
});
