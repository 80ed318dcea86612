/** Plays pieces of speech and reports its progress. */

import type { Piece, Progress } from "./playout";
import type { FromPlayer, ToPlayer } from "./worklets";
import type { Sound } from "./sound";

/** The gain while somebody seems to speak over the assistant. */
const DUCKED_GAIN = 0.2;
/** The time constant of volume changes, which then take about 30 ms. */
const SMOOTHING_S = 0.01;

export interface PlayerHooks {
  /** Called about 30 times a second during playback. `level` is the loudness from 0 to 1, after the volume. */
  position(now: Progress, level: number): void;
  /** The last sample that has arrived of a turn was played. */
  ended(end: Progress): void;
}

export interface Player {
  push(piece: Piece): void;
  /** Drops everything, with a fade-out of 10 ms. */
  flush(): void;
  /** Stops within 10 ms and keeps what is left, or goes on. */
  hold(held: boolean): void;
  setVolume(volume: number): void;
  duck(ducked: boolean): void;
  /** Disconnects from the audio output. The next piece opens it again. */
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
  let isHeld = false;
  /** Counts flushes, so that delayed reports from before a flush are ignored. */
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
      if (isHeld) post({ hold: true });
      waiting.forEach((piece) => post({ push: piece }));
    } catch {
      waiting.forEach(silentPlayer.push);
      opening = null;
    }
    waiting = [];
  }

  function report(message: FromPlayer): void {
    const startedIn = generation;
    // What has left the worklet is audible a little later: with Bluetooth, after a fifth of a second.
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
      // The context may be suspended, or blocked since before the user interacted with the page.
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
    hold(held) {
      isHeld = held;
      silentPlayer.hold(held);
      post({ hold: held });
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

/**
 * Stands in where there is no audio output: an answer takes as long as it would, so that the conversation continues
 * normally.
 */
function createSilentPlayer(hooks: PlayerHooks): Pick<Player, "push" | "flush" | "hold"> {
  let turn = -1;
  let playedMs = 0;
  let until = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let heldAt: number | null = null;

  function wait(): void {
    clearTimeout(timer);
    const end: Progress = { turn, playedMs };
    if (turn !== -1 && heldAt === null) timer = setTimeout(() => hooks.ended(end), until - performance.now());
  }

  return {
    push(piece) {
      if (piece.turn !== turn) playedMs = 0;
      turn = piece.turn;
      const lengthMs = (piece.samples.length * 1000) / piece.hz;
      playedMs += lengthMs;
      until = Math.max(until, heldAt ?? performance.now()) + lengthMs;
      wait();
    },
    hold(held) {
      if (!held && heldAt !== null) until += performance.now() - heldAt;
      heldAt = held ? performance.now() : null;
      if (until > 0) wait();
    },
    flush() {
      clearTimeout(timer);
      turn = -1;
      until = 0;
    },
  };
}
