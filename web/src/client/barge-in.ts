/**
 * Whether somebody speaks over the assistant, by loudness alone. The server decides with a real detector, but a quarter
 * of a second later; until then the sound is turned down, not off, so that a cough does not end an answer:
 * 60 ms of loudness duck it, 250 ms stop it, 300 ms without bring it back.
 */

const DUCK_MS = 60;
const INTERRUPT_MS = 250;
const RELEASE_MS = 300;
/** Between two syllables it is quiet for so long at most. */
const GAP_MS = 100;

/** Root mean squares. Speech into a browser's gain control is about 0.05 to 0.1. */
const QUIETEST_SPEECH = 0.012;
const FLOOR = { least: 0.0005, most: 0.02, falls: 0.1, rises: 1.002 };
/** Speech begins so much above the noise of the room, and goes on down to so much. */
const BEGINS = 4;
const GOES_ON = 2;
/** While the assistant is heard: what an echo canceller leaves of it is not speech. */
const ECHO = 2;
const HANGOVER_MS = 200;

export interface VoiceGate {
  /** Takes the loudness of one frame. Gives whether this frame is loud enough for speech. */
  hear(rms: number, frameMs: number, playing: boolean): boolean;
  /** As what it is to be shown: goes on for a moment after the last loud frame. */
  readonly speech: boolean;
}

export function createVoiceGate(): VoiceGate {
  let floor = QUIETEST_SPEECH / BEGINS;
  let isLoud = false;
  let sinceLoudMs = Infinity;
  return {
    get speech() {
      return sinceLoudMs < HANGOVER_MS;
    },
    hear(rms, frameMs, playing) {
      // Falls fast and rises slowly, so it follows the room and not the voice.
      const next = rms < floor ? floor + (rms - floor) * FLOOR.falls : floor * FLOOR.rises;
      floor = Math.min(FLOOR.most, Math.max(FLOOR.least, next));
      const times = isLoud ? GOES_ON : BEGINS;
      const least = Math.max(QUIETEST_SPEECH * (times / BEGINS), floor * times);
      isLoud = rms > least * (playing ? ECHO : 1);
      sinceLoudMs = isLoud ? 0 : sinceLoudMs + frameMs;
      return isLoud;
    },
  };
}

export type Verdict = "duck" | "release" | "interrupt" | null;

export interface BargeIn {
  /** What to do about it, if something changes with this frame. */
  hear(isLoud: boolean, frameMs: number, playing: boolean): Verdict;
}

export function createBargeIn(): BargeIn {
  let loudMs = 0;
  let quietMs = 0;
  let isDucked = false;
  return {
    hear(isLoud, frameMs, playing) {
      if (!playing) {
        // Whatever stopped the sound has also ended the ducking.
        loudMs = 0;
        isDucked = false;
        return null;
      }
      quietMs = isLoud ? 0 : quietMs + frameMs;
      if (isLoud) loudMs += frameMs;
      else if (!isDucked || quietMs > GAP_MS) loudMs = 0;
      if (loudMs >= INTERRUPT_MS) {
        loudMs = 0;
        isDucked = false;
        return "interrupt";
      }
      if (!isDucked && loudMs >= DUCK_MS) {
        isDucked = true;
        return "duck";
      }
      if (isDucked && quietMs >= RELEASE_MS) {
        isDucked = false;
        return "release";
      }
      return null;
    },
  };
}
