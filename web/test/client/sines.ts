/** Test tones, and how to measure them. */

export function sine(hz: number, rateHz: number, seconds: number, amplitude = 0.5): Float32Array {
  return Float32Array.from({ length: Math.round(rateHz * seconds) }, (_, i) => amplitude * Math.sin((2 * Math.PI * hz * i) / rateHz));
}

/** The amplitude of one frequency in a sound. */
export function amplitudeOf(hz: number, rateHz: number, sound: ArrayLike<number>): number {
  let re = 0;
  let im = 0;
  let weight = 0;
  for (let i = 0; i < sound.length; i++) {
    // A Hann window, so that other frequencies do not leak in.
    const window = 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / sound.length);
    const angle = (2 * Math.PI * hz * i) / rateHz;
    re += window * sound[i]! * Math.cos(angle);
    im += window * sound[i]! * Math.sin(angle);
    weight += window;
  }
  return (2 * Math.hypot(re, im)) / weight;
}

/** The level of everything but this frequency: what is left after subtracting the best-fitting tone. */
export function besides(hz: number, rateHz: number, sound: ArrayLike<number>): number {
  const sums = { ss: 0, cc: 0, sc: 0, xs: 0, xc: 0 };
  const at = (i: number): [number, number] => [Math.sin((2 * Math.PI * hz * i) / rateHz), Math.cos((2 * Math.PI * hz * i) / rateHz)];
  for (let i = 0; i < sound.length; i++) {
    const [s, c] = at(i);
    sums.ss += s * s;
    sums.cc += c * c;
    sums.sc += s * c;
    sums.xs += sound[i]! * s;
    sums.xc += sound[i]! * c;
  }
  const determinant = sums.ss * sums.cc - sums.sc ** 2;
  const a = (sums.xs * sums.cc - sums.xc * sums.sc) / determinant;
  const b = (sums.xc * sums.ss - sums.xs * sums.sc) / determinant;
  return rmsOf(Float64Array.from({ length: sound.length }, (_, i) => sound[i]! - a * at(i)[0] - b * at(i)[1]));
}

export function decibels(ratio: number): number {
  return 20 * Math.log10(Math.max(ratio, 1e-9));
}

export function rmsOf(sound: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < sound.length; i++) sum += sound[i]! ** 2;
  return Math.sqrt(sum / Math.max(1, sound.length));
}
