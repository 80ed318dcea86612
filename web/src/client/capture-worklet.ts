/** The microphone's end of the audio thread. */

import { type CapturedFrame, createCapture } from "./capture";

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
    // Whatever is said to it, it is the end: a processor that is only disconnected would run on.
    this.port.onmessage = () => (this.#isOver = true);
  }

  process(inputs: Float32Array[][]): boolean {
    // A source that is not connected yet, or not any more, gives no channels.
    this.#take(inputs[0] ?? []);
    return !this.#isOver;
  }
}

registerProcessor("antiphon-capture", CaptureProcessor);
