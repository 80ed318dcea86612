/** Reads WAV files, as `audio` messages contain them. */

export interface Wave {
  hz: number;
  /** Mono, from -1 to 1. */
  samples: Float32Array;
}

type Read = (view: DataView, at: number) => number;

const PCM = 1;
const FLOAT = 3;
const EXTENSIBLE = 0xfffe;

const READERS: Readonly<Record<string, Read>> = {
  [`${PCM}/8`]: (view, at) => (view.getUint8(at) - 128) / 128,
  [`${PCM}/16`]: (view, at) => view.getInt16(at, true) / 0x8000,
  [`${PCM}/24`]: (view, at) => (view.getInt16(at + 1, true) * 256 + view.getUint8(at)) / 0x800000,
  [`${PCM}/32`]: (view, at) => view.getInt32(at, true) / 0x80000000,
  [`${FLOAT}/32`]: (view, at) => view.getFloat32(at, true),
};

/** Returns null if this is not a WAV file, or one of an unsupported format. */
export function parseWav(bytes: Uint8Array): Wave | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.byteLength < 12 || name(view, 0) !== "RIFF" || name(view, 8) !== "WAVE") return null;
  let format: DataView | null = null;
  for (let at = 12; at + 8 <= view.byteLength; ) {
    const start = at + 8;
    // Writers that did not know the length leave 0 or the largest number, and some files are truncated.
    const said = view.getUint32(at + 4, true);
    const length = Math.min(said, view.byteLength - start);
    if (name(view, at) === "fmt " && length >= 16) format = new DataView(view.buffer, view.byteOffset + start, length);
    if (name(view, at) === "data") {
      const rest = said === 0 ? view.byteLength - start : length;
      return format && read(format, new DataView(view.buffer, view.byteOffset + start, rest));
    }
    // Chunks start at even offsets.
    at = start + length + (length % 2);
  }
  return null;
}

export function fromBase64(text: string): Uint8Array | null {
  try {
    return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  } catch {
    return null;
  }
}

function read(format: DataView, data: DataView): Wave | null {
  const outer = format.getUint16(0, true);
  const kind = outer === EXTENSIBLE && format.byteLength >= 26 ? format.getUint16(24, true) : outer;
  const channels = format.getUint16(2, true);
  const hz = format.getUint32(4, true);
  const bits = format.getUint16(14, true);
  const sample = READERS[`${kind}/${bits}`];
  if (sample === undefined || channels === 0 || hz === 0) return null;
  const frameBytes = (bits / 8) * channels;
  const samples = new Float32Array(Math.floor(data.byteLength / frameBytes));
  for (let i = 0; i < samples.length; i++) {
    let sum = 0;
    for (let channel = 0; channel < channels; channel++) sum += sample(data, i * frameBytes + (channel * bits) / 8);
    samples[i] = sum / channels;
  }
  return { hz, samples };
}

function name(view: DataView, at: number): string {
  return String.fromCharCode(view.getUint8(at), view.getUint8(at + 1), view.getUint8(at + 2), view.getUint8(at + 3));
}
