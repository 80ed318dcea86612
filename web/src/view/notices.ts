/** What passes by and is kept in a list all the same, and what has to be seen at once. */

import type { NoticeKind } from "../client/antiphon";
import { type PageState, nextKey } from "./state";

const MAX_NOTICES = 50;
const MAX_TOASTS = 4;
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
  const [fresh, key] = nextKey(state);
  // The same matter again takes the place of what passes by now.
  const isSame = (code: string | null) => code !== null && code === notice.code;
  const next = { ...fresh, notices: fresh.notices.map((each) => (isSame(each.code) ? hideToast(each) : each)) };
  const added = { key, kind, text: notice.text, code: notice.code, durationMs, at: now, isToast: true };
  const notices = [...next.notices, added].slice(-MAX_NOTICES);
  const toasts = notices.filter((each) => each.isToast).slice(-MAX_TOASTS);
  return { ...next, notices: notices.map((each) => (each.isToast && !toasts.includes(each) ? hideToast(each) : each)) };
}

function hideToast<T extends { isToast: boolean }>(notice: T): T {
  return { ...notice, isToast: false };
}

export function dismissNotice(state: PageState, key: string): PageState {
  return { ...state, notices: state.notices.map((each) => (each.key === key ? hideToast(each) : each)) };
}

/** In the list only: it is shown elsewhere. */
export function logNotice(state: PageState, text: string, code: string | null, now: number, kind: NoticeKind = "error"): PageState {
  const noted = notify(state, { kind, text, code }, now);
  return dismissNotice(noted, noted.notices.at(-1)!.key);
}

/** Stands until it is dismissed, and in the list after that. */
export function showError(state: PageState, text: string, isRetryable: boolean, code: string | null, now: number): PageState {
  const noted = logNotice(state, text, code, now);
  return { ...noted, error: { text, isRetryable } };
}
