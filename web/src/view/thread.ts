/** The thread: what was said, by whom, and what was done in between. */

import type { FlyoutType, HistoryMessage } from "../client/antiphon";
import { append, type AssistantItem, type Item, type PageState, replace, UNHEARD, type UserItem } from "./state";
import { askAgain, expireTools, loseTools, showCalls } from "./tools";

const FLYOUT_TITLES: Readonly<Record<FlyoutType, string>> = { browser: "Page", code: "Code", terminal: "Terminal" };

const HEARD = { kind: "user", goesOn: null, reason: null, sent: "sent" } as const;

export function hear(state: PageState, text: string, isFinal: boolean, now: number): PageState {
  return isFinal ? hearAll(state, text, now) : hearInterim(state, text, now);
}

function hearInterim(state: PageState, text: string, now: number): PageState {
  const interim = findUser(state, (item) => item.status === "interim");
  if (interim !== undefined) return replace(state, interim, { text });
  const before = openTurn(state);
  if (before !== undefined && continues(text, before.text)) return replace(state, before, { goesOn: text });
  if (text.trim() === "") return state;
  return append(state, { ...HEARD, text, status: "interim", at: now });
}

function hearAll(state: PageState, text: string, now: number): PageState {
  const typed = findTyped(state, text.trim());
  if (typed !== undefined) return replace(state, typed, { text, status: "final", reason: null });
  const interim = findUser(state, (item) => item.status === "interim");
  const rest = interim === undefined ? state : { ...state, items: state.items.filter((item) => item !== interim) };
  const before = openTurn(rest);
  // The person went on speaking: this is the whole turn, and the answer to its first part was dropped.
  if (before !== undefined && continues(text, before.text)) {
    return replace(withoutDropped(rest), before, { text, goesOn: null });
  }
  if (interim !== undefined) return replace(state, interim, { text, status: "final" });
  return append(state, { ...HEARD, text, status: "final", at: now });
}

/** What is on its way; or the newest of all, if it was thought to be refused. */
function findTyped(state: PageState, text: string): UserItem | undefined {
  const newest = state.items.findLast((item) => item.kind === "user");
  return findUser(
    state,
    (item) => item.text.trim() === text && (item.status === "sending" || (item.status === "unsent" && item === newest)),
  );
}

/** The newest turn of the person, as long as nothing was answered to it. */
function openTurn(state: PageState): UserItem | undefined {
  for (const item of state.items.toReversed()) {
    if (item.kind === "user" && item.status === "final") return item;
    if (item.kind === "assistant" && item.status !== "dropped") return undefined;
  }
  return undefined;
}

function findUser(state: PageState, matches: (item: UserItem) => boolean): UserItem | undefined {
  return state.items.find((item): item is UserItem => item.kind === "user" && matches(item));
}

/** Recognised anew, the same words may have got other capitals and stops. */
function continues(text: string, before: string): boolean {
  const words = toWords(text);
  const known = toWords(before);
  return known.length > 0 && known.length <= words.length && known.every((word, index) => word === words[index]);
}

function toWords(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}']+/gu) ?? [];
}

export function answer(state: PageState, chunk: string, isFirst: boolean, now: number): PageState {
  const begun = isFirst || !isStreaming(state) ? beginAnswer(state) : state;
  if (chunk === "") return begun;
  // What has just been typed stands below the answer that goes on.
  const last = begun.items.findLast((item) => item.kind !== "user" || item.status !== "sending");
  if (last?.kind === "assistant" && last.answer === begun.answer && last.status === "streaming") {
    return replace(begun, last, { text: last.text + chunk });
  }
  return appendStretch(begun, chunk, "streaming", now);
}

function beginAnswer(state: PageState): PageState {
  return { ...drop(state), answer: state.answer + 1, heard: { turn: state.heard.turn, ...UNHEARD } };
}

function appendStretch(state: PageState, text: string, status: AssistantItem["status"], now: number): PageState {
  return append(state, { kind: "assistant", answer: state.answer, text, status, heardChars: null, at: now });
}

function isStreaming(state: PageState): boolean {
  return state.items.some((item) => isOfAnswer(item, state.answer) && item.status === "streaming");
}

function isOfAnswer(item: Item, answer: number): item is AssistantItem {
  return item.kind === "assistant" && item.answer === answer;
}

/** The whole answer is known. It replaces what was streamed, stretch by stretch. */
export function finishAnswer(state: PageState, text: string, now: number): PageState {
  if (!isStreaming(state)) {
    if (text.trim() === "") return state;
    return appendStretch(beginAnswer(state), text, "final", now);
  }
  const stretches = state.items.filter((item) => isOfAnswer(item, state.answer));
  let rest = text;
  const texts = new Map<Item, string>();
  stretches.forEach((stretch, index) => {
    const isLast = index === stretches.length - 1;
    const isKept = rest.startsWith(stretch.text);
    texts.set(stretch, isLast ? rest : isKept ? stretch.text : "");
    if (isKept) rest = rest.slice(stretch.text.length);
  });
  const items = state.items
    .map((item) => (texts.has(item) ? { ...item, text: texts.get(item)!, status: "final" as const } : item))
    .filter((item) => !isOfAnswer(item as Item, state.answer) || (item as AssistantItem).text.trim() !== "");
  return { ...state, items: items as Item[] };
}

/** What was being made is not finished any more. */
export function drop(state: PageState): PageState {
  if (!state.items.some((item) => item.kind === "assistant" && item.status === "streaming")) return state;
  return {
    ...state,
    items: state.items.map((item) =>
      item.kind === "assistant" && item.status === "streaming" ? { ...item, status: "dropped" } : item,
    ),
  };
}

function withoutDropped(state: PageState): PageState {
  return { ...state, items: state.items.filter((item) => item.kind !== "assistant" || item.status !== "dropped") };
}

/** The person cut in: what was not heard of the newest answer is marked. `isSpoken`: it was being said aloud. */
export function interrupt(state: PageState, isSpoken: boolean): PageState {
  const { playedMs, receivedMs, isComplete } = state.heard;
  // Of an answer of which all has come, the part that was played is the part that was heard. Until then, its pace is that
  // of the answers before.
  const msPerChar = isComplete && receivedMs > 0 ? receivedMs / lengthOf(state) : state.msPerChar;
  let left = isSpoken || playedMs > 0 ? Math.round(playedMs / msPerChar) : Infinity;
  const asked = state.items.findLastIndex((item) => item.kind === "user" && item.status === "final");
  const items = state.items.map((item, index) => {
    if (index < asked || !isOfAnswer(item, state.answer) || item.status === "dropped") return item;
    const heardChars = left >= item.text.length ? null : wordEnd(item.text, left);
    left = Math.max(0, left - item.text.length);
    return { ...item, status: "interrupted" as const, heardChars };
  });
  return { ...state, items };
}

/** A word that was begun counts as heard. */
function wordEnd(text: string, at: number): number {
  if (at <= 0) return 0;
  const end = text.slice(at).search(/\s/);
  return end < 0 ? text.length : at + end;
}

function lengthOf(state: PageState): number {
  return state.items.reduce((sum, item) => sum + (isOfAnswer(item, state.answer) ? item.text.length : 0), 0);
}

/** An answer is over: so many milliseconds a character. */
export function learnPace(state: PageState): PageState {
  const { receivedMs, isComplete } = state.heard;
  const length = lengthOf(state);
  const msPerChar = receivedMs / length;
  // Beyond these the answer was too short to tell, or much of it is not said aloud, such as code.
  if (!isComplete || isStreaming(state) || length < 20 || msPerChar < 20 || msPerChar > 200) return state;
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
  const key = `f${state.keys + 1}`;
  const shown = append(state, { kind: "flyout", flyout: key, title, at: now });
  const made = { key, type: flyout.type, title, language: flyout.language ?? null, content: flyout.content };
  return { ...shown, flyouts: [...shown.flyouts, made], openFlyout: key };
}

function joinLines(before: string, more: string): string {
  return before === "" || before.endsWith("\n") ? before + more : `${before}\n${more}`;
}

export function loadHistory(state: PageState, message: HistoryMessage): PageState {
  // What was typed meanwhile is not in it yet.
  const waiting = state.items.filter((item) => item.kind === "user" && (item.status === "sending" || item.status === "unsent"));
  let next: PageState = { ...clear(state), conversationId: message.conversation_id };
  for (const { role, content: text, at, calls } of message.turns) {
    if (role === "user") {
      next = append(next, { ...HEARD, text, status: "final", at });
      continue;
    }
    next = { ...showCalls(next, calls ?? [], at), answer: next.answer + 1 };
    if (text === "") continue;
    next = append(next, { kind: "assistant", answer: next.answer, text, status: "final", heardChars: null, at });
  }
  next = expireTools(loseTools(next));
  // Questions of another conversation were left with it.
  next = message.conversation_id === state.conversationId ? askAgain(next) : { ...next, confirmations: [] };
  return { ...next, items: [...next.items, ...waiting] };
}

export function clear(state: PageState): PageState {
  return { ...state, items: [], queue: [], takingBack: [], flyouts: [], openFlyout: null };
}

export function tell(state: PageState, text: string, now: number): PageState {
  return append(state, { kind: "event", text, at: now });
}
