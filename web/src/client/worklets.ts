/**
 * Both ends of the audio thread, the microphone's and the speaker's. They are built into one file of their own, since a
 * worklet is loaded by its URL and shares no modules with the page.
 */

import { type CapturedFrame, createCapture } from "./capture";
import { createPlayout, type Piece, type Progress } from "./playout";

export type CaptureOptions = { toHz: number };

class CaptureProcessor extends AudioWorkletProcessor {
  readonly #take: (channels: readonly Float32Array[]) => void;
  #isOver = false;

  constructor(options: AudioWorkletNodeOptions) {
    super(options);
    const { toHz } = options.processorOptions as CaptureOptions;
    this.#take = createCapture(sampleRate, toHz, (frame: CapturedFrame) => {
      this.port.postMessage(frame, [frame.pcm.buffer]);
    });
    // Any message ends the processor. One that is only disconnected would keep running.
    this.port.onmessage = () => (this.#isOver = true);
  }

  process(inputs: Float32Array[][]): boolean {
    // A source that is not connected provides no channels.
    this.#take(inputs[0] ?? []);
    return !this.#isOver;
  }
}

registerProcessor("antiphon-capture", CaptureProcessor);

export type ToPlayer = { push: Piece } | { flush: true } | { hold: boolean };
/** `level` is the root mean square since the last report, before the volume is applied. */
export type FromPlayer = { position: Progress; level: number } | { ended: Progress };

const REPORTS_A_SECOND = 30;

class PlayerProcessor extends AudioWorkletProcessor {
  readonly #playout = createPlayout(sampleRate, (ended) => this.#post({ ended }));
  #energy = 0;
  #samples = 0;

  constructor(options: AudioWorkletNodeOptions) {
    super(options);
    this.port.onmessage = (event: MessageEvent<ToPlayer>) => {
      if ("push" in event.data) this.#playout.push(event.data.push);
      else if ("hold" in event.data) this.#playout.hold(event.data.hold);
      else this.#playout.flush();
    };
  }

  process(_inputs: Float32Array[][], outputs: Float32Array[][]): boolean {
    const block = outputs[0]?.[0];
    if (block === undefined) return true;
    const level = this.#playout.render(block);
    for (const other of outputs[0]!.slice(1)) other.set(block);
    this.#energy += level * level * block.length;
    this.#samples += block.length;
    if (this.#samples >= sampleRate / REPORTS_A_SECOND) this.#report();
    return true;
  }

  #report(): void {
    const position = this.#playout.position();
    if (position !== null) this.#post({ position, level: Math.sqrt(this.#energy / this.#samples) });
    this.#energy = this.#samples = 0;
  }

  #post(message: FromPlayer): void {
    this.port.postMessage(message);
  }
}

registerProcessor("antiphon-player", PlayerProcessor);
