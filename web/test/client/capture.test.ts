import { expect, test } from "vitest";

import { type CapturedFrame, createCapture } from "../../src/client/capture";
import { amplitudeOf, sine } from "./sines";

const BLOCK = 128;

function capture(channels: Float32Array[], fromHz: number, block = BLOCK): CapturedFrame[] {
  const frames: CapturedFrame[] = [];
  const take = createCapture(fromHz, 16_000, (frame) => frames.push(frame));
  for (let at = 0; at < channels[0]!.length; at += block) take(channels.map((each) => each.subarray(at, at + block)));
  return frames;
}

const joined = (frames: CapturedFrame[]): Float32Array =>
  Float32Array.from(frames.flatMap(({ pcm }) => [...pcm].map((sample) => sample / 0x7fff)));

test.each([16_000, 44_100, 48_000])("a microphone at %i Hz produces frames of 20 ms at 16 kHz", (hz) => {
  const frames = capture([sine(440, hz, 1)], hz);
  expect(frames.length).toBeGreaterThanOrEqual(49);
  expect(new Set(frames.map(({ pcm }) => pcm.length))).toEqual(new Set([320]));
  expect(amplitudeOf(440, 16_000, joined(frames.slice(2)))).toBeCloseTo(0.5, 2);
});

test("a frame knows how loud it is", () => {
  const frame = capture([sine(1000, 48_000, 0.2)], 48_000).at(-1)!;
  expect(frame.rms).toBeCloseTo(0.5 / Math.SQRT2, 2);
});

test("channels are mixed", () => {
  const left = sine(440, 48_000, 0.2);
  const frames = capture([left, left.map((sample) => -sample)], 48_000);
  expect(Math.max(...frames.map(({ rms }) => rms))).toBe(0);
});

test("samples that are too loud are clipped and do not wrap around", () => {
  const frames = capture([new Float32Array(48_000 / 5).fill(3)], 48_000);
  expect([...frames.at(-1)!.pcm].every((sample) => sample === 0x7fff)).toBe(true);
});

test("the size of the blocks makes no difference", () => {
  const sound = sine(300, 44_100, 0.3);
  expect(joined(capture([sound], 44_100, 1000))).toEqual(joined(capture([sound], 44_100, 77)));
});

test("without channels there are no frames", () => {
  const frames: CapturedFrame[] = [];
  createCapture(48_000, 16_000, (frame) => frames.push(frame))([]);
  expect(frames).toEqual([]);
});
