/** Notices: toasts, the list that keeps them, and errors that stay until they are dismissed. */

import type { NoticeKind } from "../client/antiphon";
import { type PageState, nextKey } from "./state";

const MAX_NOTICES = 50;
const MAX_TOASTS = 4;
const DURATION_MS: Readonly<Record<NoticeKind, number>> = { info: 5000, success: 4000, warning: 8000, error: 10_000 };
/** The limits of what a server may ask for: long enough to read, short enough not to be in the way. */
const LONGEST_MS = 60_000;
const SHORTEST_MS = 1500;

/** How long a notice is shown, if the server asks for this time, or for none. */
export function toastMs(kind: NoticeKind, askedMs: number | null | undefined): number {
  return Math.min(LONGEST_MS, Math.max(SHORTEST_MS, askedMs ?? DURATION_MS[kind] ?? DURATION_MS.info));
}

export function notify(
  state: PageState,
  notice: { kind: NoticeKind; text: string; code: string | null; durationMs?: number | null },
  now: number,
): PageState {
  const kind = Object.hasOwn(DURATION_MS, notice.kind) ? notice.kind : "info";
  const durationMs = toastMs(kind, notice.durationMs);
  const [fresh, key] = nextKey(state);
  // A notice with the same code replaces the toast that is shown.
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

/** Adds to the list only, for what is shown elsewhere. */
export function logNotice(state: PageState, text: string, code: string | null, now: number, kind: NoticeKind = "error"): PageState {
  const noted = notify(state, { kind, text, code }, now);
  return dismissNotice(noted, noted.notices.at(-1)!.key);
}

/** Shows an error until it is dismissed. The list keeps it after that. */
export function showError(state: PageState, text: string, isRetryable: boolean, code: string | null, now: number): PageState {
  const noted = logNotice(state, text, code, now);
  return { ...noted, error: { text, isRetryable } };
}
