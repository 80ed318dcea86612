/** Plays pieces of speech, and tells how far it has come. */

import type { Piece, Progress } from "./playout";
import type { FromPlayer, ToPlayer } from "./worklets";
import type { Sound } from "./sound";

/** How loud speech is while somebody seems to speak over it. */
const DUCKED_GAIN = 0.2;
/** Of changes in volume: about 30 ms to the ear. */
const SMOOTHING_S = 0.01;

export interface PlayerHooks {
  /** About 30 a second while it plays. `level` is what is heard, from 0 to 1. */
  position(now: Progress, level: number): void;
  /** The last sample that there was of a turn has been heard. */
  ended(end: Progress): void;
}

export interface Player {
  push(piece: Piece): void;
  /** Silence, after a fade of 10 ms. */
  flush(): void;
  setVolume(volume: number): void;
  duck(ducked: boolean): void;
  /** The sound is gone; the next piece asks for it again. */
  detach(): void;
}

export function createPlayer(sound: Sound, hooks: PlayerHooks): Player {
  let opening: Promise<void> | null = null;
  let node: AudioWorkletNode | null = null;
  let gain: GainNode | null = null;
  let latencyMs = () => 0;
  let waiting: Piece[] = [];
  let volume = 1;
  let isDucked = false;
  /** Counts flushes: what was on its way to the ear before one is void. */
  let generation = 0;
  const silentPlayer = createSilentPlayer(hooks);

  const loudness = () => volume * (isDucked ? DUCKED_GAIN : 1);

  async function open(): Promise<void> {
    try {
      const context = await sound.open();
      gain = new GainNode(context, { gain: loudness() });
      node = new AudioWorkletNode(context, "antiphon-player", { numberOfInputs: 0, outputChannelCount: [1] });
      node.port.onmessage = (event: MessageEvent<FromPlayer>) => report(event.data);
      node.connect(gain).connect(context.destination);
      latencyMs = () => 1000 * (context.outputLatency || context.baseLatency || 0);
      waiting.forEach((piece) => post({ push: piece }));
    } catch {
      waiting.forEach(silentPlayer.push);
      opening = null;
    }
    waiting = [];
  }

  function report(message: FromPlayer): void {
    const startedIn = generation;
    // What has left the worklet is heard a little later: on Bluetooth, a fifth of a second.
    const delayMs = latencyMs();
    if ("position" in message) {
      const { position, level } = message;
      hooks.position({ ...position, playedMs: Math.max(0, position.playedMs - delayMs) }, level * loudness());
    } else {
      setTimeout(() => {
        if (startedIn === generation) hooks.ended(message.ended);
      }, delayMs);
    }
  }

  function post(message: ToPlayer): void {
    node?.port.postMessage(message, "push" in message ? [message.push.samples.buffer] : []);
  }

  function adjust(): void {
    gain?.gain.setTargetAtTime(loudness(), gain.context.currentTime, SMOOTHING_S);
  }

  return {
    push(piece) {
      // It may be resting, or asleep since before the person touched the page.
      if (node !== null) {
        sound.open().catch(() => undefined);
        post({ push: piece });
        return;
      }
      waiting.push(piece);
      opening ??= open();
    },
    flush() {
      generation += 1;
      waiting = [];
      silentPlayer.flush();
      post({ flush: true });
    },
    setVolume(next) {
      volume = Math.max(0, Math.min(1, next));
      adjust();
    },
    duck(ducked) {
      isDucked = ducked;
      adjust();
    },
    detach() {
      this.flush();
      node?.disconnect();
      node = gain = opening = null;
    },
  };
}

/** Where there is no sound, an answer takes its time all the same, so that the conversation goes on as usual. */
function createSilentPlayer(hooks: PlayerHooks): Pick<Player, "push" | "flush"> {
  let turn = -1;
  let playedMs = 0;
  let until = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  return {
    push(piece) {
      if (piece.turn !== turn) playedMs = 0;
      turn = piece.turn;
      const lengthMs = (piece.samples.length * 1000) / piece.hz;
      playedMs += lengthMs;
      until = Math.max(until, performance.now()) + lengthMs;
      clearTimeout(timer);
      const end: Progress = { turn, playedMs };
      timer = setTimeout(() => hooks.ended(end), until - performance.now());
    },
    flush() {
      clearTimeout(timer);
      turn = -1;
      until = 0;
    },
  };
}
