/** Converts microphone audio to what the wire carries: 16 kHz, mono, 16 bits, in frames of 20 ms. */

import { createResampler } from "./resampler";

const FRAME_MS = 20;

export interface CapturedFrame {
  pcm: Int16Array;
  /** The root mean square of the frame, from 0 to 1. */
  rms: number;
}

/** Takes blocks of any length and calls `emit` with each full frame. */
export function createCapture(
  fromHz: number,
  toHz: number,
  emit: (frame: CapturedFrame) => void,
): (channels: readonly Float32Array[]) => void {
  const resampler = createResampler(fromHz, toHz);
  const frameSamples = (toHz * FRAME_MS) / 1000;
  let pcm = new Int16Array(frameSamples);
  let filled = 0;
  let energy = 0;

  function add(sample: number): void {
    const clipped = Math.max(-1, Math.min(1, sample));
    pcm[filled++] = Math.round(clipped * 0x7fff);
    energy += clipped * clipped;
    if (filled < frameSamples) return;
    const full = { pcm, rms: Math.sqrt(energy / frameSamples) };
    // Each frame gets a new buffer, since the full one is transferred to another thread.
    pcm = new Int16Array(frameSamples);
    filled = energy = 0;
    emit(full);
  }

  return (channels) => {
    const length = channels[0]?.length ?? 0;
    for (let i = 0; i < length; i++) {
      let sum = 0;
      for (const channel of channels) sum += channel[i]!;
      resampler.feed(sum / channels.length);
      while (resampler.ready) add(resampler.take());
    }
  };
}
