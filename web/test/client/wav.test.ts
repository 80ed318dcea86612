import { describe, expect, test } from "vitest";

import { fromBase64, parseWav } from "../../src/client/wav";

type Chunk = [name: string, body: Uint8Array, said?: number];

function riff(...chunks: Chunk[]): Uint8Array {
  const bytes: number[] = [...ascii("RIFF"), 0, 0, 0, 0, ...ascii("WAVE")];
  for (const [name, body, said] of chunks) {
    bytes.push(...ascii(name), ...u32(said ?? body.length), ...body);
    if (body.length % 2 === 1) bytes.push(0);
  }
  return Uint8Array.from(bytes);
}

const ascii = (text: string): number[] => [...text].map((char) => char.charCodeAt(0));
const u16 = (value: number): number[] => [value & 255, value >> 8];
const u32 = (value: number): number[] => [...u16(value & 0xffff), ...u16(value >>> 16)];

function fmt(kind: number, channels: number, hz: number, bits: number, more: number[] = []): Uint8Array {
  const frame = (bits / 8) * channels;
  return Uint8Array.from([...u16(kind), ...u16(channels), ...u32(hz), ...u32(hz * frame), ...u16(frame), ...u16(bits), ...more]);
}

const PCM16 = fmt(1, 1, 22_050, 16);
const samples16 = (...values: number[]): Uint8Array => Uint8Array.from(values.flatMap((value) => u16(value & 0xffff)));
const read = (bytes: Uint8Array): number[] | null => {
  const wave = parseWav(bytes);
  return wave && [...wave.samples];
};

describe("a WAV file", () => {
  test("is read with its rate and its samples", () => {
    const wave = parseWav(riff(["fmt ", PCM16], ["data", samples16(0, 16_384, -32_768)]));
    expect(wave?.hz).toBe(22_050);
    expect([...wave!.samples]).toEqual([0, 0.5, -1]);
  });

  test("may have other chunks before its audio, even of odd lengths", () => {
    const list: Chunk = ["LIST", Uint8Array.of(1, 2, 3)];
    expect(read(riff(list, ["fmt ", PCM16], list, ["data", samples16(16_384)], list))).toEqual([0.5]);
  });

  test.each([0, 0xffffffff, 5000])("with a wrong length of %i is read to its end", (said) => {
    expect(read(riff(["fmt ", PCM16], ["data", samples16(16_384, 16_384), said]))).toEqual([0.5, 0.5]);
  });

  test("that is cut in the middle of a sample is read up to the last whole one", () => {
    expect(read(riff(["fmt ", PCM16], ["data", samples16(16_384, 5)]).subarray(0, -1))).toEqual([0.5]);
  });

  test("in stereo becomes mono", () => {
    expect(read(riff(["fmt ", fmt(1, 2, 8000, 16)], ["data", samples16(16_384, 0)]))).toEqual([0.25]);
  });

  test.each([
    ["8 bits", fmt(1, 1, 8000, 8), Uint8Array.of(64)],
    ["24 bits", fmt(1, 1, 8000, 24), Uint8Array.of(0, 0, 0xc0)],
    ["32 bits", fmt(1, 1, 8000, 32), Uint8Array.of(0, 0, 0, 0xc0)],
    ["floating point", fmt(3, 1, 8000, 32), new Uint8Array(new Float32Array([-0.5]).buffer)],
    ["the extensible kind", fmt(0xfffe, 1, 8000, 16, [...u16(22), ...u16(16), ...u32(4), ...u16(1)]), samples16(-16_384)],
  ])("may be of %s", (_, format, data) => {
    expect(read(riff(["fmt ", format], ["data", data]))).toEqual([-0.5]);
  });

  test("may be a view into a larger buffer", () => {
    const file = riff(["fmt ", PCM16], ["data", samples16(16_384)]);
    const around = new Uint8Array(file.length + 7);
    around.set(file, 3);
    expect(read(around.subarray(3, 3 + file.length))).toEqual([0.5]);
  });
});

test.each([
  ["nothing", new Uint8Array()],
  ["text", Uint8Array.from(ascii("This is no WAV file at all."))],
  ["a file without sound", riff(["fmt ", PCM16])],
  ["a file without a format", riff(["data", samples16(1)])],
  ["a format that is cut off", riff(["fmt ", PCM16.subarray(0, 10)], ["data", samples16(1)])],
  ["compressed sound", riff(["fmt ", fmt(85, 1, 8000, 16)], ["data", samples16(1)])],
  ["no channels", riff(["fmt ", fmt(1, 0, 8000, 16)], ["data", samples16(1)])],
  ["no rate", riff(["fmt ", fmt(1, 1, 0, 16)], ["data", samples16(1)])],
])("%s is refused", (_, bytes) => {
  expect(parseWav(bytes)).toBeNull();
});

test("base64 is decoded, and anything else is refused", () => {
  expect(fromBase64("AQL/")).toEqual(Uint8Array.of(1, 2, 255));
  expect(fromBase64("?")).toBeNull();
});
