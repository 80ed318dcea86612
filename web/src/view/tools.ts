/** The cards of tool calls. A call is one item in the thread, from its start to its outcome. */

import type { ConfirmationRequestMessage, HistoryCall, ToolCallMessage, ToolResultMessage } from "../client/antiphon";
import { append, type PageState, replace, type ToolItem, type ToolStatus } from "./state";

const CONFIRMATION_REQUIRED = "CONFIRMATION_REQUIRED";
const ACTIVE: ReadonlySet<ToolStatus> = new Set(["running", "waiting", "approved"]);
const NOT_RUN: ReadonlySet<ToolStatus> = new Set(["declined", "expired"]);

type Call = Pick<ToolCallMessage, "name" | "args" | "id"> & Partial<Pick<ToolCallMessage, "title">>;
type Result = Pick<ToolResultMessage, "name" | "result" | "id"> & Partial<Pick<ToolResultMessage, "ok" | "duration_ms">>;
type Question = Omit<ConfirmationRequestMessage, "type" | "n">;

export function addCall(state: PageState, { id, name, args, title = null }: Call, now: number | null): PageState {
  // Ids are unique among active calls; another session may use them again.
  const isKnown = id != null && findCard(state, (item) => item.id === id && ACTIVE.has(item.status)) !== undefined;
  return isKnown ? state : appendCard(state, { id: id ?? null, name, title, args, status: "running", at: now });
}

export function addResult(state: PageState, message: Result, now: number | null): PageState {
  const { name, result } = message;
  const id = message.id ?? null;
  // A basic server sends no ids: the result belongs to the newest call with this name.
  const card = findCard(state, (item) => (id === null ? item.name === name && ACTIVE.has(item.status) : item.id === id));
  if (needsConfirmation(result)) {
    if (card === undefined) return appendCard(state, { id, name, args: null, status: "waiting", at: now });
    return card.status === "running" ? replace(state, card, { status: "waiting" }) : state;
  }
  const status = isFailure(message) ? "failed" : "done";
  // The user knows that a call they did not approve was refused.
  if (card !== undefined && NOT_RUN.has(card.status) && status === "failed") return state;
  const changed = { status, result, durationMs: message.duration_ms ?? null } as const;
  if (card !== undefined) return replace(state, card, changed);
  return appendCard(state, { id, name, args: null, at: now, ...changed });
}

function needsConfirmation(result: unknown): boolean {
  return (result as { error?: { type?: unknown } | null } | null)?.error?.type === CONFIRMATION_REQUIRED;
}

function isFailure({ ok, result }: Pick<Result, "ok" | "result">): boolean {
  return ok === undefined ? typeof result === "object" && result !== null && "error" in result : !ok;
}

/** The call waits for the user's approval. A request that is repeated after a restart has another token. */
export function addConfirmation(state: PageState, question: Question, now: number | null): PageState {
  const { confirmation_token: token, tool, args, preview, expires_at: expiresAt } = question;
  if (findCard(state, (item) => item.question?.token === token) !== undefined) return state;
  const id = question.id ?? null;
  const card = findCard(state, (item) => (id === null ? isWithoutQuestion(item, tool) : item.id === id && item.status !== "done"));
  const title = question.title ?? card?.title ?? null;
  const changed = { status: "waiting", title, question: { token, preview } } as const;
  const shown =
    card === undefined
      ? appendCard(state, { id, name: tool, args, at: now, ...changed })
      : replace(state, card, { ...changed, args, result: null, durationMs: null });
  const others = shown.confirmations.filter((each) => each.token !== card?.question?.token);
  return { ...shown, confirmations: [...others, { token, id, tool, title, args, preview, expiresAt }] };
}

function isWithoutQuestion(item: ToolItem, name: string): boolean {
  return item.name === name && item.question === null && (item.status === "running" || item.status === "waiting");
}

/** Closes the confirmation. The card shows the decision, unless it already shows the outcome of the call. */
export function resolveConfirmation(state: PageState, token: string, status: "approved" | "declined" | "expired"): PageState {
  const closed = { ...state, confirmations: state.confirmations.filter((each) => each.token !== token) };
  const card = findCard(state, (item) => item.question?.token === token);
  const isOpen = card !== undefined && (ACTIVE.has(card.status) || NOT_RUN.has(card.status));
  return isOpen ? replace(closed, card, { status }) : closed;
}

/** The outcome of the running calls will never be known. */
export function markCallsLost(state: PageState): PageState {
  return changeStatus(state, (status) => (status === "running" || status === "approved" ? "lost" : status));
}

/** The calls that wait for approval can no longer be approved. */
export function expireUnapproved(state: PageState): PageState {
  return changeStatus(state, (status) => (status === "waiting" ? "expired" : status));
}

/** Attaches the open confirmations to the new cards after a reload. */
export function restoreConfirmations(state: PageState): PageState {
  return state.confirmations.reduce<PageState>(
    (asked, { token, expiresAt, ...question }) =>
      addConfirmation(asked, { confirmation_token: token, expires_at: expiresAt, ...question }, null),
    { ...state, confirmations: [] },
  );
}

/** Adds the calls of a history. An approved call is in it twice: as requested, and as run. */
export function addHistoryCalls(state: PageState, calls: readonly HistoryCall[], at: number | null): PageState {
  return calls.reduce((shown, { id, name, title, args, result, ok }) => {
    const wasRun = ok !== null && !needsConfirmation(result);
    // The run may have a different id.
    const asked = wasRun ? findCard(shown, (item) => item.status === "waiting" && item.name === name) : undefined;
    const called = addCall(asked === undefined ? shown : replace(shown, asked, { id }), { id, name, title, args }, at);
    return ok === null ? called : addResult(called, { id, name, result, ok }, at);
  }, state);
}

function changeStatus(state: PageState, change: (status: ToolStatus) => ToolStatus): PageState {
  const items = state.items.map((item) => {
    const status = item.kind === "tool" ? change(item.status) : null;
    return item.kind === "tool" && status !== null && status !== item.status ? { ...item, status } : item;
  });
  return { ...state, items };
}

type NewCard = Pick<ToolItem, "id" | "name" | "args" | "status" | "at"> & Partial<ToolItem>;

function appendCard(state: PageState, card: NewCard): PageState {
  return append(state, { kind: "tool", title: null, result: null, durationMs: null, question: null, ...card });
}

/** Finds the newest matching card. */
function findCard(state: PageState, matches: (item: ToolItem) => boolean): ToolItem | undefined {
  return state.items.findLast((item): item is ToolItem => item.kind === "tool" && matches(item));
}
