import { afterEach, beforeEach, expect, test, vi } from "vitest";

import type { CapturedFrame } from "../../src/client/capture";
import type { FromPlayer, ToPlayer } from "../../src/client/worklets";
import { rmsOf, sine } from "./sines";

interface Processor {
  port: { onmessage: ((event: { data: unknown }) => void) | null };
  process(inputs: Float32Array[][], outputs: Float32Array[][]): boolean;
}

const registered = new Map<string, new (options: unknown) => Processor>();
let posted: unknown[];

beforeEach(async () => {
  posted = [];
  vi.stubGlobal("sampleRate", 48_000);
  vi.stubGlobal("registerProcessor", (name: string, made: new () => Processor) => registered.set(name, made));
  vi.stubGlobal(
    "AudioWorkletProcessor",
    class {
      port = { onmessage: null, postMessage: (message: unknown) => posted.push(message) };
    },
  );
  vi.resetModules();
  await import("../../src/client/worklets");
});

afterEach(() => vi.unstubAllGlobals());

const start = (name: string): Processor => new (registered.get(name)!)({ processorOptions: { toHz: 16_000 } });
const tell = (processor: Processor, data: ToPlayer | "end"): void => processor.port.onmessage?.({ data });

/** Runs the audio thread for a while and returns its output. */
function play(processor: Processor, ms: number, channels = 1): Float32Array[] {
  const all: number[][] = Array.from({ length: channels }, () => []);
  for (let at = 0; at < ms * 48; at += 128) {
    const blocks = all.map(() => new Float32Array(128));
    processor.process([], [blocks]);
    blocks.forEach((block, i) => all[i]!.push(...block));
  }
  return all.map((samples) => Float32Array.from(samples));
}

test("the capture processor posts a frame every 20 ms until it is told to end", () => {
  const capture = start("antiphon-capture");
  const sound = sine(440, 48_000, 0.1);
  for (let at = 0; at < sound.length; at += 128) capture.process([[sound.subarray(at, at + 128)]], []);
  const frames = posted as CapturedFrame[];
  expect(frames.map(({ pcm }) => pcm.length)).toEqual(Array(5).fill(320));
  expect(frames.at(-1)!.rms).toBeCloseTo(0.35, 1);
  expect(capture.process([], [])).toBe(true);
  tell(capture, "end");
  expect(capture.process([], [])).toBe(false);
});

test("the player processor plays its input on every channel and reports its progress", () => {
  const player = start("antiphon-player");
  tell(player, { push: { turn: 4, hz: 22_050, samples: sine(440, 22_050, 0.2) } });
  const [left, right] = play(player, 300, 2);
  expect(rmsOf(left!.subarray(480, 9000))).toBeCloseTo(0.35, 1);
  expect(right).toEqual(left);
  const reports = posted as FromPlayer[];
  expect(reports.at(-1)).toEqual({ ended: { turn: 4, playedMs: 200 } });
  expect(reports.filter((report) => "position" in report)).toHaveLength(5);
});

test("the player processor is silent 10 ms after a flush and reports nothing more", () => {
  const player = start("antiphon-player");
  tell(player, { push: { turn: 4, hz: 22_050, samples: sine(440, 22_050, 1) } });
  play(player, 100);
  tell(player, { flush: true });
  posted = [];
  const [out] = play(player, 100);
  expect(rmsOf(out!.subarray(480))).toBe(0);
  expect(posted).toEqual([]);
});
