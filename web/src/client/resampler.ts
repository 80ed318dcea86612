/** A streaming sample rate converter: a polyphase filter with a windowed sinc. */

/** The zero crossings on each side of the sinc, at the lower of the two rates. */
const CROSSINGS = 18;
/**
 * The cutoff as a share of half the lower rate. With the window below, the filter is down by 55 dB at half the rate.
 */
const CUTOFF = 0.89;
/** The shape parameter of the Kaiser window. */
const BETA = 6;

export interface Resampler {
  /** Whether to `take` the next sample. If not, `feed` one. The other of the two must not be called. */
  readonly ready: boolean;
  feed(sample: number): void;
  take(): number;
  /** Forgets its input. */
  reset(): void;
}

export function createResampler(fromHz: number, toHz: number): Resampler {
  // Two output samples are down/up input samples apart. Both are whole numbers, so nothing drifts.
  const divisor = greatestDivisor(fromHz, toHz);
  const up = toHz / divisor;
  const down = fromHz / divisor;
  const half = Math.ceil(CROSSINGS * Math.max(1, fromHz / toHz));
  const taps = 2 * half;
  const kernel = makeKernel(up, half, CUTOFF * Math.min(1, toHz / fromHz));
  // Each sample is written twice, so that the newest `taps` samples are always contiguous.
  const history = new Float32Array(2 * taps);
  let newest = 0;
  let phase = up;

  return {
    get ready() {
      return phase < up;
    },
    feed(sample) {
      newest = newest === 0 ? taps - 1 : newest - 1;
      history[newest] = history[newest + taps] = sample;
      phase -= up;
    },
    take() {
      let sum = 0;
      for (let tap = 0, at = phase * taps; tap < taps; tap++) sum += kernel[at + tap]! * history[newest + tap]!;
      phase += down;
      return sum;
    },
    reset() {
      history.fill(0);
      phase = up;
    },
  };
}

/** One row for each phase: the weights of the newest sample, the one before it, and so on. */
function makeKernel(phases: number, half: number, cutoff: number): Float32Array {
  const taps = 2 * half;
  const kernel = new Float32Array(phases * taps);
  for (let phase = 0; phase < phases; phase++) {
    const row = kernel.subarray(phase * taps, (phase + 1) * taps);
    let sum = 0;
    for (let tap = 0; tap < taps; tap++) {
      const distance = tap + phase / phases - half;
      const edge = distance / half;
      row[tap] = sinc(cutoff * distance) * bessel(BETA * Math.sqrt(Math.max(0, 1 - edge * edge)));
      sum += row[tap]!;
    }
    // Each phase passes a constant unchanged. Otherwise the differences would be audible as a tone.
    for (let tap = 0; tap < taps; tap++) row[tap]! /= sum;
  }
  return kernel;
}

function sinc(x: number): number {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

/** The modified Bessel function of order zero, by its series. */
function bessel(x: number): number {
  let term = 1;
  let sum = 1;
  for (let k = 1; term > 1e-9 * sum; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}
