import { describe, expect, test } from "vitest";

import { createResampler } from "../../src/client/resampler";
import { amplitudeOf, besides, decibels, rmsOf, sine } from "./sines";

function resample(sound: Float32Array, fromHz: number, toHz: number): Float32Array {
  const resampler = createResampler(fromHz, toHz);
  const out: number[] = [];
  for (const sample of sound) {
    resampler.feed(sample);
    while (resampler.ready) out.push(resampler.take());
  }
  return Float32Array.from(out);
}

const steady = (sound: Float32Array): Float32Array => sound.subarray(Math.floor(sound.length / 10));

const MICROPHONES = [44_100, 48_000, 96_000, 16_000, 8_000].map((hz) => [hz, 16_000] as const);
const SPEAKERS = [44_100, 48_000, 96_000, 16_000, 22_050].map((hz) => [22_050, hz] as const);

describe.each([...MICROPHONES, ...SPEAKERS])("from %i to %i Hz", (fromHz, toHz) => {
  const lower = Math.min(fromHz, toHz);

  test.each([0.02, 0.2, 0.5, 0.75])("passes a tone at %f of half the lower rate", (part) => {
    const hz = (part * lower) / 2;
    const out = steady(resample(sine(hz, fromHz, 0.4), fromHz, toHz));
    expect(Math.abs(decibels(amplitudeOf(hz, toHz, out) / 0.5))).toBeLessThan(0.1);
  });

  test("adds no other tones", () => {
    const hz = 0.3 * lower;
    const out = steady(resample(sine(hz, fromHz, 0.4), fromHz, toHz));
    expect(decibels(besides(hz, toHz, out) / rmsOf(out))).toBeLessThan(-60);
  });

  test("produces the right number of samples", () => {
    const out = resample(new Float32Array(fromHz), fromHz, toHz);
    expect(Math.abs(out.length - toHz)).toBeLessThanOrEqual(Math.ceil(toHz / fromHz));
  });

  test("keeps a constant unchanged", () => {
    const out = steady(resample(new Float32Array(fromHz / 5).fill(0.5), fromHz, toHz));
    expect(Math.max(...out.map((sample) => Math.abs(sample - 0.5)))).toBeLessThan(1e-5);
  });
});

test.each([
  [48_000, 8_001],
  [48_000, 9_000],
  [48_000, 12_000],
  [48_000, 15_000],
  [48_000, 20_000],
  [44_100, 8_200],
  [44_100, 14_000],
])("from %i to 16,000 Hz, a tone at %i Hz, which would alias, is gone", (fromHz, hz) => {
  const out = steady(resample(sine(hz, fromHz, 0.4), fromHz, 16_000));
  expect(decibels(rmsOf(out) / rmsOf(sine(hz, fromHz, 0.4)))).toBeLessThan(-55);
});

test("upsampled speech has no image above its own band", () => {
  const out = steady(resample(sine(6000, 22_050, 0.4), 22_050, 48_000));
  expect(decibels(amplitudeOf(22_050 - 6000, 48_000, out) / 0.5)).toBeLessThan(-60);
});

test("input from before a reset has no effect after it", () => {
  const resampler = createResampler(22_050, 48_000);
  for (let i = 0; i < 100; i++) {
    while (!resampler.ready) resampler.feed(1);
    resampler.take();
  }
  resampler.reset();
  while (!resampler.ready) resampler.feed(0);
  expect(resampler.take()).toBe(0);
});
