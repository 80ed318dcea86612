/** Reminders, timers and alarms: which of them are shown, and which ring. */

import type { ReminderKind, ReminderMessage } from "../client/antiphon";
import { findActivity, formatMoment } from "./format";
import { append, type PageState, type Reminder } from "./state";

const NAMES: Readonly<Record<ReminderKind, string>> = { reminder: "Reminder", timer: "Timer", alarm: "Alarm" };
/** How many times each kind rings. Timers and alarms ring until they are dismissed. */
const RINGS: Readonly<Record<ReminderKind, number>> = { reminder: 2, timer: Infinity, alarm: Infinity };
/** A missed one is old news: the list tells it. */
const MISSED_RINGS = 1;
/** How many are remembered, so that none is shown twice. */
const MAX_SEEN = 500;

/** A server repeats messages after a reconnection. A reminder that comes back at another time is another one. */
export function addReminder(state: PageState, message: ReminderMessage, now: number): PageState {
  const { id, due, missed = false } = message;
  const key = `${id}@${due}`;
  if (state.seenReminders.includes(key)) return state;
  const kind = Object.hasOwn(NAMES, message.kind ?? "") ? message.kind : "reminder";
  const added: Reminder = { key, message: message.message, due, kind, missed };
  const text = [describeReminder(added), message.message].filter((part) => part !== "").join(": ");
  const when = missed ? ` (${formatMoment(due, now)})` : "";
  return append(
    { ...state, reminders: [...state.reminders, added], seenReminders: [...state.seenReminders, key].slice(-MAX_SEEN) },
    { kind: "event", text: text + when, at: now },
  );
}

export function dismissReminder(state: PageState, key: string): PageState {
  return { ...state, reminders: state.reminders.filter((each) => each.key !== key) };
}

/** "Timer", or "Missed timer". */
export function describeReminder({ kind, missed }: Pick<Reminder, "kind" | "missed">): string {
  return missed ? `Missed ${NAMES[kind].toLowerCase()}` : NAMES[kind];
}

/** Whether a ring would be heard over the assistant's speech in a call. */
export function isOverSpeech(state: PageState): boolean {
  return state.talk !== "off" && findActivity(state) === "speaking";
}

/** Finds the reminders that have not rung as often as they should. */
export function findUnrung(reminders: readonly Reminder[], rung: ReadonlyMap<string, number>): Reminder[] {
  return reminders.filter(({ key, kind, missed }) => (rung.get(key) ?? 0) < (missed ? MISSED_RINGS : RINGS[kind]));
}

/** Chooses the reminders that ring now. Each rings only once over speech, and goes on when the assistant is silent. */
export function chooseRinging(
  reminders: readonly Reminder[], rung: ReadonlyMap<string, number>, overSpeech: boolean,
): Reminder[] {
  return findUnrung(reminders, rung).filter(({ key }) => !overSpeech || !rung.has(key));
}
