/** The thread: transcripts, answers and what happened in between. */

import type { Citation, FlyoutType, HistoryMessage } from "../client/antiphon";
import {
  append, type AssistantItem, findUser, inTurnOrder, isOfNewestTurn, type Item, NOT_PLAYED, type PageState, remove, replace,
  type UserItem,
} from "./state";
import { restoreConfirmations, expireUnapproved, markCallsLost, addHistoryCalls } from "./tools";

const FLYOUT_TITLES: Readonly<Record<FlyoutType, string>> = { browser: "Page", code: "Code", terminal: "Terminal" };

const TRANSCRIBED = { kind: "user", continuation: null, reason: null, sent: "sent" } as const;

interface Transcript {
  text: string;
  /** The turn it belongs to; null if the server does not number its turns. */
  turn: number | null;
}

/** The server has started to work on a turn. The turn's number may become known later, or never. */
export function beginTurn(state: PageState): PageState {
  return { ...state, turnStart: state.keyCount };
}

/** Once the number of the newest turn is known, the items that it has so far get that number. */
function learnTurn(state: PageState, turn: number | null): PageState {
  if (turn === null || turn <= state.turn) return state;
  const isUnnumbered = (item: Item) =>
    item.turn === null && item.kind !== "user" && item.kind !== "event" && isOfNewestTurn(state, item);
  return { ...state, turn, items: state.items.map((item) => (isUnnumbered(item) ? { ...item, turn } : item)) };
}

/** A new session numbers its turns from 1 again. */
export function forgetTurns(state: PageState): PageState {
  const items = state.items.map((item) => (item.turn === null ? item : { ...item, turn: null }));
  return { ...state, items, turn: 0, turnStart: state.keyCount };
}

export function addInterimTranscript(state: PageState, { text, turn }: Transcript, now: number): PageState {
  const interim = findInterim(state, turn);
  if (interim !== undefined) return replace(state, interim, { text });
  const before = findUnanswered(state, turn);
  if (before !== undefined && continues(text, before.text)) return replace(state, before, { continuation: text });
  if (text.trim() === "" || findFinal(state, turn) !== undefined) return state;
  return append(state, { ...TRANSCRIBED, text, status: "interim", at: now, turn });
}

/** Native speech models may answer before the transcript arrives: it is then inserted before that answer. */
export function addFinalTranscript(before: PageState, { text, turn }: Transcript, now: number): PageState {
  const state = learnTurn(before, turn);
  const known = findFinal(state, turn);
  if (known !== undefined) return replace(withoutDropped(state, known), known, { text, continuation: null });
  const typed = findTyped(state, text.trim());
  if (typed !== undefined) return finalize(state, typed, { text, turn });
  const interim = findInterim(state, turn);
  const rest = interim === undefined ? state : remove(state, interim);
  const open = findUnanswered(rest, turn);
  // The user continued to speak: this is the whole turn, and the answer to its first part was dropped.
  if (open !== undefined && continues(text, open.text)) {
    return replace(withoutDropped(rest, open), open, { text, continuation: null, turn });
  }
  if (interim !== undefined) return finalize(state, interim, { text, turn });
  return append(state, { ...TRANSCRIBED, text, status: "final", at: now, turn });
}

function finalize(state: PageState, item: UserItem, { text, turn }: Transcript): PageState {
  return inTurnOrder(replace(state, item, { text, turn, status: "final", reason: null }), item.key);
}

function findInterim(state: PageState, turn: number | null): UserItem | undefined {
  const isSame = (other: number | null) => turn === null || other === null || other === turn;
  return findUser(state, (item) => item.status === "interim" && isSame(item.turn));
}

function findFinal(state: PageState, turn: number | null): UserItem | undefined {
  return turn === null ? undefined : findUser(state, (item) => item.status !== "interim" && item.turn === turn);
}

/** Finds the typed message that this transcript confirms: one being sent, or the newest if it was marked as unsent. */
function findTyped(state: PageState, text: string): UserItem | undefined {
  const newest = state.items.findLast((item) => item.kind === "user");
  return findUser(
    state,
    (item) => item.text.trim() === text && (item.status === "sending" || (item.status === "unsent" && item === newest)),
  );
}

/** Finds the user's newest turn, if it has no answer yet and `turn` is not an earlier one. */
function findUnanswered(state: PageState, turn: number | null): UserItem | undefined {
  for (const item of state.items.toReversed()) {
    if (item.kind === "user" && item.status === "final") return turn !== null && turn < (item.turn ?? 0) ? undefined : item;
    if (item.kind === "assistant" && item.status !== "dropped") return undefined;
  }
  return undefined;
}

/** Compares words only: recognised again, the same words may have other capitals and punctuation. */
function continues(text: string, before: string): boolean {
  const words = toWords(text);
  const known = toWords(before);
  return known.length > 0 && known.length <= words.length && known.every((word, index) => word === words[index]);
}

function toWords(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}']+/gu) ?? [];
}

interface Answer {
  text: string;
  turn: number | null;
  citations?: readonly Citation[];
}

export function addAnswerChunk(before: PageState, { text, turn }: Answer, isFirst: boolean, now: number): PageState {
  const state = learnTurn(before, turn);
  const streaming = isFirst ? null : findStreaming(state, turn);
  const begun = streaming === null ? beginAnswer(state, turn) : state;
  if (text === "") return begun;
  const number = streaming ?? begun.answer;
  // Below the answer there may be what the user has typed or said since, and items of other turns.
  const isBelow = (item: Item) =>
    turn === null ? item.kind === "user" && item.status === "sending" : item.kind === "user" || (item.turn ?? turn) !== turn;
  const last = begun.items.findLast((item) => !isBelow(item));
  if (last !== undefined && isOfAnswer(last, number) && last.status === "streaming") {
    return replace(begun, last, { text: last.text + text });
  }
  return appendSegment(begun, { text, turn }, number, "streaming", now);
}

function beginAnswer(state: PageState, turn: number | null): PageState {
  // An answer to another turn may still be streaming.
  const isReplaced = (item: AssistantItem) => turn === null || item.turn === null || item.turn === turn;
  return { ...dropStreaming(state, isReplaced), answer: state.answer + 1, playback: NOT_PLAYED };
}

function appendSegment(
  state: PageState, { text, turn, citations = [] }: Answer, number: number, status: AssistantItem["status"], now: number,
): PageState {
  return append(state, { kind: "assistant", answer: number, text, turn, citations, status, heardChars: null, at: now });
}

/** The number of the answer to this turn that is being streamed; without a turn, of the newest one. */
function findStreaming(state: PageState, turn: number | null): number | null {
  const matches = (item: AssistantItem) => (turn === null ? item.answer === state.answer : item.turn === turn);
  const isFound = (item: Item): item is AssistantItem =>
    item.kind === "assistant" && item.status === "streaming" && matches(item);
  return state.items.findLast(isFound)?.answer ?? null;
}

function isOfAnswer(item: Item, answer: number): item is AssistantItem {
  return item.kind === "assistant" && item.answer === answer;
}

/** The complete answer replaces what was streamed, segment by segment. */
export function finishAnswer(before: PageState, { text, turn, citations = [] }: Answer, now: number): PageState {
  const state = learnTurn(before, turn);
  const number = findStreaming(state, turn);
  if (number === null) {
    if (text.trim() === "") return state;
    const begun = beginAnswer(state, turn);
    return appendSegment(begun, { text, turn, citations }, begun.answer, "final", now);
  }
  const segments = state.items.filter((item) => isOfAnswer(item, number));
  let rest = text;
  const texts = new Map<Item, string>();
  segments.forEach((segment, index) => {
    const isLast = index === segments.length - 1;
    const isKept = rest.startsWith(segment.text);
    texts.set(segment, isLast ? rest : isKept ? segment.text : "");
    if (isKept) rest = rest.slice(segment.text.length);
  });
  const items = state.items
    .map((item): Item => (isOfAnswer(item, number) ? { ...item, text: texts.get(item)!, status: "final" } : item))
    .filter((item) => !isOfAnswer(item, number) || item.text.trim() !== "");
  const last = items.findLast((item) => isOfAnswer(item, number));
  return { ...state, items: items.map((item): Item => (item === last ? { ...last, citations } : item)) };
}

/** Marks streaming answers as dropped: they will not be finished. */
export function dropStreaming(state: PageState, matches: (item: AssistantItem) => boolean = () => true): PageState {
  const isDropped = (item: Item): item is AssistantItem =>
    item.kind === "assistant" && item.status === "streaming" && matches(item);
  if (!state.items.some(isDropped)) return state;
  return { ...state, items: state.items.map((item): Item => (isDropped(item) ? { ...item, status: "dropped" } : item)) };
}

/** Removes the dropped answers below this turn of the user. */
function withoutDropped(state: PageState, asked: UserItem): PageState {
  const from = state.items.indexOf(asked);
  const isKept = (item: Item, index: number) => index < from || item.kind !== "assistant" || item.status !== "dropped";
  return { ...state, items: state.items.filter(isKept) };
}

/** The user interrupted: marks what was not heard of the newest answer. `isSpoken` says that it was being spoken. */
export function markInterrupted(state: PageState, isSpoken: boolean): PageState {
  const { playedMs, receivedMs, isComplete } = state.playback;
  // If all audio of the answer has arrived, the share that was played is the share that was heard. Until then, the
  // speech rate of earlier answers is used.
  const msPerChar = isComplete && receivedMs > 0 ? receivedMs / lengthOf(state) : state.msPerChar;
  let left = isSpoken || playedMs > 0 ? Math.round(playedMs / msPerChar) : Infinity;
  const asked = state.items.findLastIndex((item) => item.kind === "user" && item.status === "final");
  const items = state.items.map((item, index) => {
    const isCut = index >= asked && isOfAnswer(item, state.answer) && isOfNewestTurn(state, item);
    if (!isCut || item.status === "dropped") return item;
    const heardChars = left >= item.text.length ? null : endOfWord(item.text, left);
    left = Math.max(0, left - item.text.length);
    return { ...item, status: "interrupted" as const, heardChars };
  });
  return { ...state, items };
}

/** A word that was started counts as heard. */
function endOfWord(text: string, at: number): number {
  if (at <= 0) return 0;
  const end = text.slice(at).search(/\s/);
  return end < 0 ? text.length : at + end;
}

function lengthOf(state: PageState): number {
  return state.items.reduce((sum, item) => sum + (isOfAnswer(item, state.answer) ? item.text.length : 0), 0);
}

/** Learns the milliseconds of speech per character from an answer that is complete. */
export function learnSpeechRate(state: PageState): PageState {
  const { receivedMs, isComplete } = state.playback;
  const length = lengthOf(state);
  const msPerChar = receivedMs / length;
  // Outside these limits the answer was too short, or much of it was not spoken, such as code.
  if (!isComplete || findStreaming(state, null) !== null || length < 20 || msPerChar < 20 || msPerChar > 200) return state;
  return { ...state, msPerChar };
}

export function openFlyout(
  state: PageState,
  flyout: { type: FlyoutType; content: string; language: string | null; title: string | null },
  now: number,
): PageState {
  const title = flyout.title || FLYOUT_TITLES[flyout.type] || "Panel";
  const terminal = flyout.type === "terminal" ? state.flyouts.find((each) => each.type === "terminal") : undefined;
  if (terminal !== undefined) {
    const grown = { ...terminal, content: joinLines(terminal.content, flyout.content) };
    const flyouts = state.flyouts.map((each) => (each === terminal ? grown : each));
    return { ...state, flyouts, openFlyout: terminal.key };
  }
  const key = `f${state.keyCount + 1}`;
  const shown = append(state, { kind: "flyout", flyout: key, title, at: now });
  const made = { key, type: flyout.type, title, language: flyout.language ?? null, content: flyout.content };
  return { ...shown, flyouts: [...shown.flyouts, made], openFlyout: key };
}

function joinLines(before: string, more: string): string {
  return before === "" || before.endsWith("\n") ? before + more : `${before}\n${more}`;
}

export function loadHistory(state: PageState, message: HistoryMessage): PageState {
  // What was typed meanwhile is not part of the history yet.
  const waiting = state.items.filter((item) => item.kind === "user" && (item.status === "sending" || item.status === "unsent"));
  let next: PageState = { ...clear(state), conversationId: message.conversation_id };
  for (const { role, content: text, at, calls } of message.turns) {
    if (role === "user") {
      next = append(next, { ...TRANSCRIBED, text, status: "final", at });
      continue;
    }
    next = { ...addHistoryCalls(next, calls ?? [], at), answer: next.answer + 1 };
    if (text === "") continue;
    next = append(next, { kind: "assistant", answer: next.answer, text, status: "final", heardChars: null, citations: [], at });
  }
  next = expireUnapproved(markCallsLost(next));
  // Confirmations that belong to another conversation are gone.
  next = message.conversation_id === state.conversationId ? restoreConfirmations(next) : { ...next, confirmations: [] };
  return { ...next, items: [...next.items, ...waiting] };
}

export function clear(state: PageState): PageState {
  return { ...state, items: [], queue: [], unqueuing: [], flyouts: [], openFlyout: null, openImage: null };
}

export function addEvent(state: PageState, text: string, now: number): PageState {
  return append(state, { kind: "event", text, at: now });
}
