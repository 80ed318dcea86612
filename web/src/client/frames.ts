/** Frames of the wire to values and back. */

import { SERVER_TYPES, type ServerMessage } from "./wire";

/** Speech in a binary frame, in the place of an `audio` message. */
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

/** Null for what is no message of this version: clients pass over it. */
export function parseMessage(text: string): ServerMessage | null {
  try {
    const value: unknown = JSON.parse(text);
    const isKnown = typeof value === "object" && value !== null && "type" in value && SERVER_TYPES.has(value.type as string);
    return isKnown ? (value as ServerMessage) : null;
  } catch {
    return null;
  }
}

/** Null for what is no speech. */
export function parseSpeech(frame: ArrayBuffer): Speech | null {
  const samples = (frame.byteLength - HEADER_BYTES) / 2;
  if (samples <= 0 || !Number.isInteger(samples)) return null;
  const view = new DataView(frame);
  if (view.getUint8(0) !== SPEECH_FRAME) return null;
  // Copied, since the header is of an odd length. Samples are little-endian on the wire, as on every machine with a browser.
  const pcm = new Int16Array(frame.slice(HEADER_BYTES));
  return { type: "speech", n: view.getUint32(1), turn: view.getUint32(5), seq: view.getUint32(9), pcm };
}

/** `playing`: the assistant's speech is being played, and the microphone may hear it. */
export function encodeMicrophone(pcm: Int16Array, playing: boolean): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(1 + pcm.byteLength);
  frame[0] = playing ? PLAYING_FLAG : 0;
  frame.set(new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength), 1);
  return frame;
}
