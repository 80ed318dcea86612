/** The playout buffer: pieces of speech in, gapless samples out, with the progress of each turn. */

import { createResampler } from "./resampler";

/** The length of the fade-out when playback is stopped: a sudden end clicks. */
const FADE_MS = 10;
/** The silence after which nothing of the last piece is left in the resampler. */
const TAIL_MS = 5;

export interface Piece {
  turn: number;
  hz: number;
  samples: Int16Array | Float32Array;
}

export interface Progress {
  turn: number;
  /** How much of the turn was played, since its beginning. */
  playedMs: number;
}

export interface Playout {
  push(piece: Piece): void;
  /** Fades out and drops everything queued. What is pushed from now on is played after the fade. */
  flush(): void;
  /** Fades out and keeps everything queued, or goes on where it stopped. */
  hold(held: boolean): void;
  /** Fills the block, with silence if there is nothing to play, and returns its root mean square. */
  render(block: Float32Array): number;
  /** The current position; null while nothing plays. */
  position(): Progress | null;
}

/** `onEnded` is called whenever everything that has arrived of a turn was played. */
export function createPlayout(contextHz: number, onEnded: (end: Progress) => void): Playout {
  const fadeSamples = Math.round((contextHz * FADE_MS) / 1000);
  const tailSamples = Math.round((contextHz * TAIL_MS) / 1000);
  let hz = contextHz;
  let resampler = createResampler(hz, contextHz);
  let queue: Piece[] = [];
  let fading: Piece[] | null = null;
  let fadeLeft = 0;
  let isHeld = false;
  /** Counts from `fadeSamples` down to 0 while it is held, and up again afterwards. */
  let openness = fadeSamples;
  let tailLeft = 0;
  /** The index of the next sample in the first piece. */
  let offset = 0;
  let turn = -1;
  /** How much of the turn was played, without the first piece. */
  let playedMs = 0;

  function startPiece(piece: Piece): void {
    if (piece.turn !== turn) playedMs = 0;
    turn = piece.turn;
    if (piece.hz === hz) return;
    hz = piece.hz;
    resampler = createResampler(hz, contextHz);
  }

  /** Takes the next sample of the pieces; 0 after the last. */
  function nextSample(pieces: Piece[]): number {
    const piece = pieces[0];
    if (piece === undefined) return 0;
    if (offset === 0) startPiece(piece);
    tailLeft = tailSamples;
    const sample = piece.samples instanceof Int16Array ? piece.samples[offset]! / 0x8000 : piece.samples[offset]!;
    offset += 1;
    if (offset === piece.samples.length) {
      offset = 0;
      playedMs += (piece.samples.length * 1000) / piece.hz;
      pieces.shift();
      if (pieces === queue && pieces[0]?.turn !== turn) onEnded({ turn, playedMs });
    }
    return sample;
  }

  function endFade(): void {
    fading = null;
    offset = 0;
    turn = -1;
    resampler.reset();
  }

  return {
    push(piece) {
      if (piece.samples.length > 0) queue.push(piece);
    },

    flush() {
      if (fading === null) {
        fading = queue;
        fadeLeft = fadeSamples;
      }
      queue = [];
    },

    hold(held) {
      isHeld = held;
    },

    render(block) {
      let energy = 0;
      for (let i = 0; i < block.length; i++) {
        if (isHeld && openness === 0) {
          if (fading !== null) endFade();
          block[i] = 0;
          continue;
        }
        openness = isHeld ? openness - 1 : Math.min(fadeSamples, openness + 1);
        if (fading !== null && fadeLeft === 0) endFade();
        const pieces = fading ?? queue;
        if (pieces.length === 0 && tailLeft === 0) {
          if (fading !== null) endFade();
          block[i] = 0;
          continue;
        }
        while (!resampler.ready) {
          const sample = nextSample(pieces);
          resampler.feed(sample);
        }
        if (tailLeft > 0) tailLeft -= 1;
        const sample = resampler.take() * (fading === null ? 1 : fadeLeft-- / fadeSamples) * (openness / fadeSamples);
        block[i] = sample;
        energy += sample * sample;
      }
      return Math.sqrt(energy / block.length);
    },

    position() {
      const piece = queue[0];
      if (piece === undefined || fading !== null) return null;
      const beforeMs = piece.turn === turn ? playedMs : 0;
      return { turn: piece.turn, playedMs: beforeMs + (offset * 1000) / piece.hz };
    },
  };
}
