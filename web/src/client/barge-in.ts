/**
 * Detects by loudness alone that somebody may speak over the assistant. The server decides with a real voice activity
 * detector and by the words, but a network away. Until then playback is ducked: 60 ms of loudness duck it, and 300 ms of
 * quiet restore it.
 */

const DUCK_MS = 60;
const RELEASE_MS = 300;

/** Levels are root mean squares. Speech after a browser's gain control is at about 0.05 to 0.1. */
const MIN_SPEECH_RMS = 0.012;
const FLOOR = { min: 0.0005, max: 0.02, fall: 0.1, rise: 1.002 };
/** How far above the noise floor speech starts, and how far above it speech continues. */
const START_RATIO = 4;
const CONTINUE_RATIO = 2;
/** Raises the threshold while the assistant plays, since echo cancellation leaves some of its voice. */
const ECHO_RATIO = 2;
const HANGOVER_MS = 200;

export interface VoiceGate {
  /** Takes the loudness of one frame and returns whether it is loud enough for speech. */
  process(rms: number, frameMs: number, playing: boolean): boolean;
  /** Whether to show that the user speaks: stays true for a moment after the last loud frame. */
  readonly speech: boolean;
}

export function createVoiceGate(): VoiceGate {
  let floor = MIN_SPEECH_RMS / START_RATIO;
  let isLoud = false;
  let sinceLoudMs = Infinity;
  return {
    get speech() {
      return sinceLoudMs < HANGOVER_MS;
    },
    process(rms, frameMs, playing) {
      // The floor falls fast and rises slowly, so it follows the room and not the voice.
      const next = rms < floor ? floor + (rms - floor) * FLOOR.fall : floor * FLOOR.rise;
      floor = Math.min(FLOOR.max, Math.max(FLOOR.min, next));
      const ratio = isLoud ? CONTINUE_RATIO : START_RATIO;
      const threshold = Math.max(MIN_SPEECH_RMS * (ratio / START_RATIO), floor * ratio);
      isLoud = rms > threshold * (playing ? ECHO_RATIO : 1);
      sinceLoudMs = isLoud ? 0 : sinceLoudMs + frameMs;
      return isLoud;
    },
  };
}

export type Verdict = "duck" | "release" | null;

export interface BargeIn {
  /** Returns what to do after this frame; null if nothing changes. */
  process(isLoud: boolean, frameMs: number, playing: boolean): Verdict;
}

export function createBargeIn(): BargeIn {
  let loudMs = 0;
  let quietMs = 0;
  let isDucked = false;
  return {
    process(isLoud, frameMs, playing) {
      if (!playing) {
        // Whatever stopped playback has also ended the ducking.
        loudMs = 0;
        isDucked = false;
        return null;
      }
      quietMs = isLoud ? 0 : quietMs + frameMs;
      loudMs = isLoud ? loudMs + frameMs : 0;
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
