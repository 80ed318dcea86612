/** A fake socket, controlled by the test. */

import type { ClientMessage, ServerMessage } from "../../src/client/wire";

/** A server message as a test writes it; irrelevant fields may be omitted. */
export type Told = { type: ServerMessage["type"]; n: number } & Record<string, unknown>;

export class FakeSocket {
  static all: FakeSocket[] = [];
  static get last(): FakeSocket {
    return FakeSocket.all.at(-1)!;
  }

  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string | ArrayBuffer }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  binaryType = "blob";
  bufferedAmount = 0;
  readyState = 1;
  closedWith: number | undefined;
  readonly frames: (string | Uint8Array)[] = [];

  constructor(readonly url: string) {
    FakeSocket.all.push(this);
  }

  get sent(): ClientMessage[] {
    return this.frames.filter((frame) => typeof frame === "string").map((frame) => JSON.parse(frame) as ClientMessage);
  }

  send(frame: string | Uint8Array): void {
    this.frames.push(frame);
  }

  close(code: number): void {
    this.closedWith = code;
  }

  accept(): this {
    this.onopen?.();
    return this;
  }

  tell(...messages: Told[]): this {
    for (const message of messages) this.onmessage?.({ data: JSON.stringify(message) });
    return this;
  }

  tellBytes(frame: ArrayBuffer): this {
    this.onmessage?.({ data: frame });
    return this;
  }

  drop(code = 1006, reason = ""): void {
    this.onclose?.({ code, reason });
  }
}

export function introduce(n: number, more: Record<string, unknown> = {}): Told {
  return {
    type: "session",
    n,
    session_id: "s1",
    conversation_id: "c1",
    resume: `handle-${n}`,
    resumed: false,
    mode: "text",
    ...more,
  };
}

export function speechFrame(n: number, turn: number, seq: number, pcm: readonly number[]): ArrayBuffer {
  const view = new DataView(new ArrayBuffer(13 + 2 * pcm.length));
  view.setUint8(0, 1);
  [n, turn, seq].forEach((number, index) => view.setUint32(1 + 4 * index, number));
  pcm.forEach((sample, index) => view.setInt16(13 + 2 * index, sample, true));
  return view.buffer as ArrayBuffer;
}
