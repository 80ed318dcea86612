/** Typed messages: being sent, queued behind an answer, rejected, or left without an answer. None of them is lost. */

import type { ErrorMessage, QueuedText } from "../client/antiphon";
import { showError, logNotice } from "./notices";
import { append, findUser, type Item, type PageState, remove, replace, type UserItem } from "./state";

const SESSION_LOST = "Not sent: the session was lost.";
const INTERRUPTED = "Not sent: the answer was interrupted.";
/** Error codes that mean that the server has read a message and rejected it. */
const REJECTIONS: ReadonlySet<string> = new Set([
  "busy", "unavailable", "conversation_gone", "too_large", "too_fast", "bad_message",
]);
/** Error codes that mean that the turn has ended without an answer. */
const TURN_FAILED: ReadonlySet<string> = new Set(["model_failed", "internal", "unavailable"]);

const TYPED = { kind: "user", status: "sending", continuation: null, reason: null } as const;

export function addTyped(state: PageState, text: string, now: number): PageState {
  return append(state, { ...TYPED, text, sent: state.connection.state === "open" ? "sent" : "not_yet", at: now });
}

/** Moves a failed message to the end of the thread, where it is sent again. */
export function retryTyped(state: PageState, key: string, now: number): PageState {
  const item = findUser(state, (each) => each.key === key);
  return item === undefined ? state : addTyped(remove(state, item), item.text, now);
}

/** Takes the server's whole queue. Messages that left it are being sent, or were removed by the user. */
export function updateQueue(state: PageState, queue: readonly QueuedText[], now: number): PageState {
  const known = new Set(state.queue.map(({ id }) => id));
  const left = new Set(queue.map(({ id }) => id));
  let next = state;
  for (const { text } of queue.filter(({ id }) => !known.has(id))) {
    const item = findUser(next, (each) => each.status === "sending" && each.text.trim() === text.trim());
    if (item !== undefined) next = remove(next, item);
  }
  const gone = state.queue.filter(({ id }) => !left.has(id));
  const back = gone.filter(({ id }) => state.unqueuing.includes(id));
  for (const each of gone) {
    if (!back.includes(each)) next = append(next, { ...TYPED, text: each.text, sent: "queued", at: now });
  }
  const unqueuing = state.unqueuing.filter((id) => left.has(id));
  return restoreDraft({ ...next, queue, unqueuing }, back.map(({ text }) => text).join("\n"));
}

/** The server is idle: it has confirmed the queued messages that it took, and dropped the rest with the answer. */
export function markQueuedUnsent(state: PageState): PageState {
  return markUnsent(state, (item) => item.sent === "queued", INTERRUPTED);
}

function markUnsent(state: PageState, matches: (item: UserItem) => boolean, reason: string): PageState {
  const isAffected = (item: Item): item is UserItem => item.kind === "user" && item.status === "sending" && matches(item);
  if (!state.items.some(isAffected)) return state;
  return { ...state, items: state.items.map((item) => (isAffected(item) ? { ...item, status: "unsent", reason } : item)) };
}

/** Puts the text back into the message box, unless something is being typed there. */
function restoreDraft(state: PageState, text: string): PageState {
  return state.draft.trim() === "" && text !== "" ? { ...state, draft: text } : state;
}

/** Shows an error about a message beside that message, and any other error above the thread. */
export function applyError(state: PageState, message: ErrorMessage, now: number): PageState {
  const { code, message: reason } = message;
  const sending = REJECTIONS.has(code) ? findUser(state, (item) => item.status === "sending") : undefined;
  if (code === "busy" && sending !== undefined && state.draft.trim() === "") {
    return showError(restoreDraft(remove(state, sending), sending.text), reason, message.retryable ?? false, code, now);
  }
  if (sending !== undefined) return logNotice(replace(state, sending, { status: "unsent", reason }), reason, code, now);
  const question = TURN_FAILED.has(code) ? findUnanswered(state) : undefined;
  if (question !== undefined) return logNotice(replace(state, question, { status: "failed", reason }), reason, code, now);
  return showError(state, reason, message.retryable ?? false, code ?? null, now);
}

/** Finds the newest question, if it has no complete answer. */
function findUnanswered(state: PageState): UserItem | undefined {
  const newest = state.items.findLast(
    (item) =>
      (item.kind === "user" && (item.status === "final" || item.status === "sending")) ||
      (item.kind === "assistant" && (item.status === "final" || item.status === "interrupted")),
  );
  return newest?.kind === "user" ? newest : undefined;
}

/** A new session knows nothing of what was sent or queued. What was typed without a connection is sent to it. */
export function markTypedLost(state: PageState, now: number): PageState {
  return markUnsent(updateQueue({ ...state, unqueuing: [] }, [], now), (item) => item.sent !== "not_yet", SESSION_LOST);
}
