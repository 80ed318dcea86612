/** Rings for reminders, timers and alarms. The sound is synthesised, so that no file has to be loaded. */

import type { ReminderKind } from "../client/antiphon";
import { chooseRinging, findUnrung } from "../view/reminders";
import type { Reminder } from "../view/state";

const PERIOD_MS = 3000;
/** How long a new audio context may take to start. After that, the browser blocks it. */
const START_MS = 800;
const GESTURES = ["pointerdown", "keydown"] as const;
const LOUDEST = 0.3;
/** The first rings are softer: nobody wants to be frightened by an alarm. */
const SOFTEST = 0.4;
const RISE = 0.15;

interface Tune {
  notesHz: readonly number[];
  /** From the start of one note to the next. */
  stepS: number;
  noteS: number;
}

const TUNES: Readonly<Record<ReminderKind, Tune>> = {
  reminder: { notesHz: [660, 880], stepS: 0.27, noteS: 0.45 },
  timer: { notesHz: [880, 880, 880], stepS: 0.22, noteS: 0.3 },
  alarm: { notesHz: [523, 659, 784, 1047], stepS: 0.3, noteS: 0.5 },
};
/** If several ring at once, the first of these kinds is heard. */
const KINDS: readonly ReminderKind[] = ["alarm", "timer", "reminder"];

export interface RingerOptions {
  /** From 0 to 1. */
  volume(): number;
  /** The id of the speaker; "" is the system's default. */
  output(): string;
  isOverSpeech(): boolean;
  /** Called when the browser begins and ceases to block the sound. */
  blocked(isBlocked: boolean): void;
}

export interface Ringer {
  /** Takes over the reminders that are shown now, and rings for those that are new. */
  follow(reminders: readonly Reminder[]): void;
  stop(): void;
}

export function createRinger(options: RingerOptions): Ringer {
  const rung = new Map<string, number>();
  let shown: readonly Reminder[] = [];
  let context: AudioContext | null = null;
  let period: ReturnType<typeof setInterval> | undefined;
  let late: ReturnType<typeof setTimeout> | undefined;
  let isBlocked = false;
  /** Whether a ring waits for the context to start. */
  let isPending = false;

  function report(now: boolean): void {
    if (now !== isBlocked) options.blocked(now);
    isBlocked = now;
  }

  function ring(): void {
    const ringing = chooseRinging(shown, rung, options.isOverSpeech());
    if (ringing.length === 0) {
      if (findUnrung(shown, rung).length === 0) rest();
      return;
    }
    const speaker = open();
    // What is scheduled in a suspended context would all be heard at once when it starts.
    isPending = speaker?.state !== "running";
    if (speaker === null || isPending) return;
    const kind = KINDS.find((each) => ringing.some((reminder) => reminder.kind === each)) ?? "reminder";
    const times = Math.max(...ringing.map(({ key }) => rung.get(key) ?? 0));
    for (const { key } of ringing) rung.set(key, (rung.get(key) ?? 0) + 1);
    play(speaker, TUNES[kind], options.volume() * LOUDEST * Math.min(1, SOFTEST + RISE * times));
  }

  function open(): AudioContext | null {
    if (context !== null) return context;
    if (typeof AudioContext === "undefined") {
      report(true);
      return null;
    }
    const made = new AudioContext();
    context = made;
    if (options.output() !== "" && "setSinkId" in made) {
      // A remembered device may be gone. The default is used then.
      (made as { setSinkId(id: string): Promise<void> }).setSinkId(options.output()).catch(() => undefined);
    }
    made.onstatechange = () => {
      if (made.state !== "running") return;
      report(false);
      if (isPending) ring();
    };
    for (const gesture of GESTURES) addEventListener(gesture, resume, true);
    late = setTimeout(() => report(made.state !== "running"), START_MS);
    resume();
    return made;
  }

  function resume(): void {
    if (context?.state === "suspended") context.resume().catch(() => undefined);
  }

  /** An open context uses some CPU all the time, so it is closed when nothing rings. */
  function rest(): void {
    clearInterval(period);
    clearTimeout(late);
    period = undefined;
    for (const gesture of GESTURES) removeEventListener(gesture, resume, true);
    const closing = context;
    context = null;
    if (closing !== null) {
      closing.onstatechange = null;
      closing.close().catch(() => undefined);
    }
    report(false);
  }

  return {
    follow(reminders) {
      const isNew = reminders.some(({ key }) => shown.every((each) => each.key !== key));
      shown = reminders;
      const keys = new Set(reminders.map(({ key }) => key));
      for (const key of rung.keys()) if (!keys.has(key)) rung.delete(key);
      if (findUnrung(shown, rung).length === 0) {
        rest();
      } else if (isNew) {
        clearInterval(period);
        period = setInterval(ring, PERIOD_MS);
        ring();
      }
    },
    stop: rest,
  };
}

function play(context: AudioContext, { notesHz, stepS, noteS }: Tune, loudness: number): void {
  if (loudness <= 0) return;
  notesHz.forEach((hz, index) => {
    const start = context.currentTime + index * stepS;
    const tone = new OscillatorNode(context, { frequency: hz });
    const volume = new GainNode(context, { gain: 0 });
    volume.gain.setValueAtTime(0, start);
    volume.gain.linearRampToValueAtTime(loudness, start + 0.02);
    volume.gain.exponentialRampToValueAtTime(0.001, start + noteS);
    tone.connect(volume).connect(context.destination);
    tone.start(start);
    tone.stop(start + noteS);
  });
}
