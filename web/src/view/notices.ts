/** What passes by and is kept in a list all the same, and what has to be seen at once. */

import type { NoticeKind } from "../client/antiphon";
import { type PageState, takeKey } from "./state";

const KEPT = 50;
const TOASTS = 4;
const DURATION_MS: Readonly<Record<NoticeKind, number>> = { info: 5000, success: 4000, warning: 8000, error: 10_000 };
/** Longer than this nobody waits for; shorter than this nobody reads. */
const LONGEST_MS = 60_000;
const SHORTEST_MS = 1500;

export function notify(
  state: PageState,
  notice: { kind: NoticeKind; text: string; code: string | null; durationMs?: number | null },
  now: number,
): PageState {
  const kind = Object.hasOwn(DURATION_MS, notice.kind) ? notice.kind : "info";
  const durationMs = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, notice.durationMs ?? DURATION_MS[kind]));
  const [fresh, key] = takeKey(state);
  // The same matter again takes the place of what passes by now.
  const isSame = (code: string | null) => code !== null && code === notice.code;
  const next = { ...fresh, notices: fresh.notices.map((each) => (isSame(each.code) ? pass(each) : each)) };
  const added = { key, kind, text: notice.text, code: notice.code, durationMs, at: now, isToast: true };
  const notices = [...next.notices, added].slice(-KEPT);
  const toasts = notices.filter((each) => each.isToast).slice(-TOASTS);
  return { ...next, notices: notices.map((each) => (each.isToast && !toasts.includes(each) ? pass(each) : each)) };
}

function pass<T extends { isToast: boolean }>(notice: T): T {
  return { ...notice, isToast: false };
}

export function passNotice(state: PageState, key: string): PageState {
  return { ...state, notices: state.notices.map((each) => (each.key === key ? pass(each) : each)) };
}

/** In the list only: it is shown elsewhere. */
export function note(state: PageState, text: string, code: string | null, now: number, kind: NoticeKind = "error"): PageState {
  const noted = notify(state, { kind, text, code }, now);
  return passNotice(noted, noted.notices.at(-1)!.key);
}

/** Stands until it is dismissed, and in the list after that. */
export function fail(state: PageState, text: string, isRetryable: boolean, code: string | null, now: number): PageState {
  const noted = note(state, text, code, now);
  return { ...noted, error: { text, isRetryable } };
}
