/** Decodes and encodes the frames of the wire. */

import { SERVER_TYPES, type ServerMessage } from "./wire";

/** Speech in a binary frame, instead of an `audio` message. */
export interface Speech {
  type: "speech";
  n: number;
  turn: number;
  seq: number;
  /** At 22,050 Hz, mono. */
  pcm: Int16Array;
}

export type Incoming = ServerMessage | Speech;

const SPEECH_FRAME = 0x01;
const HEADER_BYTES = 13;
const PLAYING_FLAG = 0b1;

/** Returns null for anything that is not a message of this version, which clients ignore. */
export function parseMessage(text: string): ServerMessage | null {
  try {
    const value: unknown = JSON.parse(text);
    const isKnown = typeof value === "object" && value !== null && "type" in value && SERVER_TYPES.has(value.type as string);
    return isKnown ? (value as ServerMessage) : null;
  } catch {
    return null;
  }
}

/** Returns null if the frame is not speech. */
export function parseSpeech(frame: ArrayBuffer): Speech | null {
  const samples = (frame.byteLength - HEADER_BYTES) / 2;
  if (samples <= 0 || !Number.isInteger(samples)) return null;
  const view = new DataView(frame);
  if (view.getUint8(0) !== SPEECH_FRAME) return null;
  // Copied because the header has an odd length. Samples are little-endian on the wire, as on every machine that runs
  // a browser.
  const pcm = new Int16Array(frame.slice(HEADER_BYTES));
  return { type: "speech", n: view.getUint32(1), turn: view.getUint32(5), seq: view.getUint32(9), pcm };
}

/** `playing` says that the assistant's speech is playing, so the microphone may pick it up. */
export function encodeMicrophone(pcm: Int16Array, playing: boolean): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(1 + pcm.byteLength);
  frame[0] = playing ? PLAYING_FLAG : 0;
  frame.set(new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength), 1);
  return frame;
}
