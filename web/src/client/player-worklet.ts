/** The loudspeaker's end of the audio thread. */

import { createPlayout, type Piece, type Progress } from "./playout";

export type ToPlayer = { push: Piece } | { flush: true };
/** `level`: root mean square since the last report, before the volume. */
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
