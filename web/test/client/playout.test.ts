import { expect, test } from "vitest";

import { createPlayout, type Playout, type Progress } from "../../src/client/playout";
import { amplitudeOf, rmsOf, sine } from "./sines";

const HZ = 48_000;
const SPEECH_HZ = 22_050;
const BLOCK = 128;

let ends: Progress[];

function start(contextHz = HZ): Playout {
  ends = [];
  return createPlayout(contextHz, (end) => ends.push(end));
}

function render(playout: Playout, ms: number): Float32Array {
  const out = new Float32Array(Math.ceil((HZ * ms) / 1000 / BLOCK) * BLOCK);
  for (let at = 0; at < out.length; at += BLOCK) playout.render(out.subarray(at, at + BLOCK));
  return out;
}

const tone = (seconds: number, hz = 440): Float32Array => sine(hz, SPEECH_HZ, seconds);
const piece = (turn: number, samples: Float32Array | Int16Array) => ({ turn, hz: SPEECH_HZ, samples });
/** The largest step between two samples, which is large for a click. */
const roughest = (sound: Float32Array): number =>
  sound.reduce((most, sample, i) => Math.max(most, Math.abs(sample - (sound[i - 1] ?? sample))), 0);

test("speech is played at its own pitch", () => {
  const playout = start();
  playout.push(piece(1, tone(0.5)));
  const out = render(playout, 500);
  expect(amplitudeOf(440, HZ, out.subarray(2400, 21_600))).toBeCloseTo(0.5, 2);
});

test("16-bit samples are as loud as floating ones", () => {
  const playout = start();
  playout.push(piece(1, Int16Array.from(tone(0.5), (sample) => sample * 0x8000)));
  expect(amplitudeOf(440, HZ, render(playout, 500).subarray(2400, 21_600))).toBeCloseTo(0.5, 2);
});

test("there is no gap between two pieces", () => {
  const whole = tone(0.4);
  const playout = start();
  playout.push(piece(1, whole.slice(0, 3001)));
  playout.push(piece(1, whole.slice(3001, 3002)));
  playout.push(piece(1, whole.slice(3002)));
  const alone = start();
  alone.push(piece(1, whole));
  expect(render(playout, 380)).toEqual(render(alone, 380));
});

test("the end of a turn is reported once, with its length, when its last sample was played", () => {
  const playout = start();
  playout.push(piece(7, tone(0.1)));
  render(playout, 90);
  expect(ends).toEqual([]);
  render(playout, 100);
  expect(ends).toEqual([{ turn: 7, playedMs: 100 }]);
});

test("two turns are counted separately", () => {
  const playout = start();
  playout.push(piece(1, tone(0.1)));
  playout.push(piece(2, tone(0.2)));
  render(playout, 150);
  expect(ends).toEqual([{ turn: 1, playedMs: 100 }]);
  expect(playout.position()).toMatchObject({ turn: 2 });
  expect(playout.position()!.playedMs).toBeCloseTo(50, -1);
});

test("the position is exact to a block", () => {
  const playout = start();
  playout.push(piece(1, tone(1)));
  const rendered = render(playout, 400).length;
  expect(Math.abs(playout.position()!.playedMs - (rendered * 1000) / HZ)).toBeLessThan(3);
});

test("late speech leaves silence, and playback continues", () => {
  const playout = start();
  playout.push(piece(1, tone(0.1)));
  render(playout, 120);
  expect(rmsOf(render(playout, 200))).toBe(0);
  playout.push(piece(1, tone(0.1)));
  expect(rmsOf(render(playout, 100))).toBeGreaterThan(0.3);
  render(playout, 20);
  expect(ends.at(-1)).toEqual({ turn: 1, playedMs: 200 });
});

test("a flush fades out within 10 ms, without a click", () => {
  const playout = start();
  playout.push(piece(1, tone(1)));
  const before = render(playout, 200);
  playout.flush();
  const after = render(playout, 100);
  expect(rmsOf(after.subarray(0, 240))).toBeGreaterThan(0.1);
  expect(rmsOf(after.subarray(HZ / 100))).toBe(0);
  expect(roughest(Float32Array.from([...before.slice(-10), ...after]))).toBeLessThan(0.05);
});

test("flushed speech is neither reported nor counted", () => {
  const playout = start();
  playout.push(piece(1, tone(0.205)));
  render(playout, 200);
  playout.flush();
  render(playout, 50);
  expect(ends).toEqual([]);
  expect(playout.position()).toBeNull();
});

test("speech that is pushed after a flush is played from its beginning", () => {
  const playout = start();
  playout.push(piece(1, tone(1)));
  render(playout, 200);
  playout.flush();
  playout.push(piece(2, tone(0.1)));
  render(playout, 150);
  expect(ends).toEqual([{ turn: 2, playedMs: 100 }]);
});

test("flushing an empty queue delays nothing", () => {
  const playout = start();
  playout.flush();
  playout.push(piece(1, tone(0.1)));
  expect(rmsOf(render(playout, 20))).toBeGreaterThan(0.2);
});

test("speech at another rate is played at its own pitch too", () => {
  const playout = start();
  playout.push(piece(1, tone(0.1)));
  playout.push({ turn: 1, hz: 16_000, samples: sine(440, 16_000, 0.5) });
  const out = render(playout, 500);
  expect(amplitudeOf(440, HZ, out.subarray(HZ * 0.12, HZ * 0.48))).toBeCloseTo(0.5, 2);
});

test("an empty piece changes nothing", () => {
  const playout = start();
  playout.push(piece(1, new Float32Array()));
  render(playout, 20);
  expect([ends, playout.position()]).toEqual([[], null]);
});

test("rendering returns the loudness of the block", () => {
  const playout = start();
  playout.push(piece(1, tone(0.2)));
  render(playout, 50);
  expect(playout.render(new Float32Array(HZ / 10))).toBeCloseTo(0.35, 1);
});

test("a hold fades out without a click, keeps the rest, and goes on from there", () => {
  const playout = start();
  playout.push(piece(1, tone(0.5)));
  const before = render(playout, 100);
  playout.hold(true);
  const held = render(playout, 300);
  expect(rmsOf(held.subarray(960))).toBe(0);
  const at = playout.position()!;
  render(playout, 1000);
  expect([playout.position(), ends]).toEqual([at, []]);
  playout.hold(false);
  const after = render(playout, 450);
  expect(roughest(Float32Array.from([...before, ...held, ...after]))).toBeLessThan(0.06);
  expect(ends).toEqual([{ turn: 1, playedMs: 500 }]);
  const sounding = [before, held, after].reduce((sum, out) => sum + out.filter((sample) => sample !== 0).length, 0);
  expect(sounding / HZ).toBeCloseTo(0.5, 1);
});

test("what was held can be dropped", () => {
  const playout = start();
  playout.push(piece(1, tone(0.5)));
  render(playout, 100);
  playout.hold(true);
  render(playout, 100);
  playout.flush();
  playout.hold(false);
  playout.push(piece(2, tone(0.1)));
  render(playout, 300);
  expect(ends).toEqual([{ turn: 2, playedMs: 100 }]);
});
