/** What the page shows, as plain values. Everything here is made by `reduce` and by nothing else. */

import type {
  Connection,
  EnergyReason,
  FlyoutType,
  MicrophoneState,
  Mode,
  NoticeKind,
  QueuedText,
  SoundState,
  State,
  TurnMetricsMessage,
} from "../client/antiphon";

interface ItemBase {
  key: string;
  /** When it happened, in Unix milliseconds. */
  at: number | null;
  /** The turn that it belongs to, as the server numbers them within a session. Null if the server did not say. */
  turn: number | null;
}

export interface UserItem extends ItemBase {
  kind: "user";
  text: string;
  /**
   * interim: still being said. sending: typed, and not yet taken by the server. unsent: the server did not take it.
   * failed: it was taken, and there is no answer to it.
   */
  status: "interim" | "sending" | "final" | "unsent" | "failed";
  /** Why it is unsent, or has failed. */
  reason: string | null;
  /** not_yet: there was no connection. queued: it waited for the end of an answer, and does so no longer. */
  sent: "not_yet" | "sent" | "queued";
  /** What is being said now, if it goes on from `text`. */
  continuation: string | null;
}

/** A stretch of an answer. What tools do in between splits an answer into several. */
export interface AssistantItem extends ItemBase {
  kind: "assistant";
  /** The same for all stretches of one answer. */
  answer: number;
  text: string;
  /** dropped: given up before it was heard, since the person went on. */
  status: "streaming" | "final" | "interrupted" | "dropped";
  /** How many characters were heard, in proportion to the sound; null: all, or it was not spoken. */
  heardChars: number | null;
}

/**
 * waiting: for the person's approval. approved: it runs, since they gave it. declined and expired: it did not run.
 * lost: nobody knows, since its session is gone.
 */
export type ToolStatus = "running" | "waiting" | "approved" | "declined" | "expired" | "done" | "failed" | "lost";

export interface ToolItem extends ItemBase {
  kind: "tool";
  id: string | null;
  name: string;
  args: unknown;
  status: ToolStatus;
  result: unknown;
  durationMs: number | null;
  /** What the person was asked, if the call needed their approval. */
  question: { token: string; preview: string } | null;
}

export interface ImageItem extends ItemBase {
  kind: "image";
  url: string;
  caption: string | null;
}

/** Where a flyout was opened, so that it can be opened again. */
export interface FlyoutItem extends ItemBase {
  kind: "flyout";
  flyout: string;
  title: string;
}

/** What happened to the conversation itself: a new session, the end of a call, a reminder. */
export interface EventItem extends ItemBase {
  kind: "event";
  text: string;
}

export type Item = UserItem | AssistantItem | ToolItem | ImageItem | FlyoutItem | EventItem;

export interface Flyout {
  key: string;
  type: FlyoutType;
  title: string;
  language: string | null;
  content: string;
}

export interface Confirmation {
  token: string;
  /** Of the call. */
  id: string | null;
  tool: string;
  args: Record<string, unknown>;
  preview: string;
  expiresAt: number;
}

export interface Reminder {
  id: string;
  message: string;
  due: number;
}

export interface Notice {
  key: string;
  kind: NoticeKind;
  text: string;
  code: string | null;
  durationMs: number;
  at: number;
  /** Whether it passes by now. The list keeps it in any case. */
  isToast: boolean;
}

export interface Energy {
  level: number;
  max: number;
  model: string | null;
  reason: EnergyReason | null;
}

/** How the person talks: not at all, hands-free, or as long as the key or the button is down. */
export type Talk = "off" | "hands_free" | "held";

export interface PageState {
  connection: Connection;
  microphone: MicrophoneState;
  sound: SoundState;
  talk: Talk;
  server: State;
  conversationId: string | null;
  items: readonly Item[];
  /** Typed, and waiting for the end of the answer under way. */
  queue: readonly QueuedText[];
  /** Ids of those that the person wants back. */
  unqueuing: readonly string[];
  /** What is being typed. */
  draft: string;
  flyouts: readonly Flyout[];
  /** The one that is shown. */
  openFlyout: string | null;
  confirmations: readonly Confirmation[];
  reminders: readonly Reminder[];
  notices: readonly Notice[];
  energy: Readonly<Record<Mode, Energy | null>>;
  metrics: readonly TurnMetricsMessage[];
  block: { until: number; message: string } | null;
  goAway: { at: number; reason: string } | null;
  /** Whether the page has just come back to its session. */
  isReconnected: boolean;
  /** Whether the token that was sent was refused, rather than none. */
  isTokenRefused: boolean;
  /** Whether the server can talk; null as long as that is not known. */
  hasVoice: boolean | null;
  error: { text: string; isRetryable: boolean } | null;
  /** How far the newest answer was heard, and how much there is to hear of it. */
  playback: { playedMs: number; receivedMs: number; isComplete: boolean; isPlaying: boolean };
  /** Milliseconds of speech a character, learned from answers of which all has come. */
  msPerChar: number;
  answer: number;
  /** The highest turn number that the server has named in this session. */
  turn: number;
  /** How many keys were taken when the newest turn began: items with later keys came since then. */
  turnStart: number;
  lastN: number;
  keyCount: number;
}

/** How a server closes that wants a token, or another one. */
export const TOKEN_NEEDED = 4401;

/** Of a calm voice, before all of an answer has come. */
const MS_PER_CHAR = 80;

export const NOT_PLAYED = { playedMs: 0, receivedMs: 0, isComplete: false, isPlaying: false } as const;

export function initialState(): PageState {
  return {
    connection: { state: "connecting", attempt: 0 },
    microphone: { state: "off" },
    sound: { state: "off" },
    talk: "off",
    server: "idle",
    conversationId: null,
    items: [],
    queue: [],
    unqueuing: [],
    draft: "",
    flyouts: [],
    openFlyout: null,
    confirmations: [],
    reminders: [],
    notices: [],
    energy: { voice: null, text: null },
    metrics: [],
    block: null,
    goAway: null,
    isReconnected: false,
    isTokenRefused: false,
    hasVoice: null,
    error: null,
    playback: NOT_PLAYED,
    msPerChar: MS_PER_CHAR,
    answer: 0,
    turn: 0,
    turnStart: 0,
    lastN: 0,
    keyCount: 0,
  };
}

/** A key that no other item of this page has. */
export function nextKey(state: PageState): [PageState, string] {
  return [{ ...state, keyCount: state.keyCount + 1 }, `k${state.keyCount + 1}`];
}

type NewItem<T> = T extends Item ? Omit<T, "key" | "turn"> & { turn?: number | null } : never;

/** Adds an item at the end of the thread or, if later turns are shown already, at the end of its own turn. */
export function append(state: PageState, item: NewItem<Item>): PageState {
  const [next, key] = nextKey(state);
  return inTurnOrder({ ...next, items: [...next.items, { turn: null, ...item, key } as Item] }, key);
}

/** Moves an item up to its own turn: a question to the beginning of it, anything else to the end. */
export function inTurnOrder(state: PageState, key: string): PageState {
  const from = state.items.findIndex((item) => item.key === key);
  const moved = state.items[from]!;
  const { turn } = moved;
  if (turn === null) return state;
  const belowIt = (other: number) => (moved.kind === "user" ? other >= turn : other > turn);
  const to = state.items.slice(0, from).findIndex((item) => item.turn !== null && belowIt(item.turn));
  return to < 0 ? state : { ...state, items: state.items.toSpliced(from, 1).toSpliced(to, 0, moved) };
}

/** Whether the item came since the newest turn began. */
export function isOfNewestTurn(state: PageState, item: Item): boolean {
  return Number(item.key.slice(1)) > state.turnStart;
}

export function replace<T extends Item>(state: PageState, item: T, changed: Partial<T>): PageState {
  return { ...state, items: state.items.map((each) => (each === item ? { ...each, ...changed } : each)) };
}
