/** The state of the page, as plain values. Only `reduce` creates new states. */

import type {
  Citation,
  Connection,
  EnergyReason,
  FlyoutType,
  MicrophoneState,
  Mode,
  NoticeKind,
  QueuedText,
  RecordingChoice,
  ReminderKind,
  SoundState,
  State,
  TurnMetricsMessage,
} from "../client/antiphon";
import { EMPTY_DRAFT, type RecordDraft } from "./knowledge";

interface ItemBase {
  key: string;
  /** When it happened, in Unix milliseconds. */
  at: number | null;
  /** The turn it belongs to, as numbered by the server within a session. Null if unknown. */
  turn: number | null;
}

export interface UserItem extends ItemBase {
  kind: "user";
  text: string;
  /**
   * interim: still being spoken. sending: typed, and not confirmed by the server yet. unsent: not accepted by the server.
   * failed: accepted, but the answer failed.
   */
  status: "interim" | "sending" | "final" | "unsent" | "failed";
  /** Why it is unsent or failed. */
  reason: string | null;
  /** not_yet: there was no connection. queued: it was queued behind an answer, and has left the queue. */
  sent: "not_yet" | "sent" | "queued";
  /** What is being said now, if it continues `text`. */
  continuation: string | null;
}

/** A segment of an answer. Tool calls split an answer into several. */
export interface AssistantItem extends ItemBase {
  kind: "assistant";
  /** The number of the answer, shared by all its segments. */
  answer: number;
  text: string;
  /** dropped: abandoned before it was heard, because the user continued to speak. */
  status: "streaming" | "final" | "interrupted" | "dropped";
  /** How many characters were heard, estimated from the audio; null if all were, or if it was not spoken. */
  heardChars: number | null;
  /** The sources of the answer. The last segment has them. */
  citations: readonly Citation[];
}

/**
 * waiting: for the user's approval. approved: running after the user's approval. declined and expired: it did not run.
 * lost: the outcome is unknown, because its session is gone.
 */
export type ToolStatus = "running" | "waiting" | "approved" | "declined" | "expired" | "done" | "failed" | "lost";

export interface ToolItem extends ItemBase {
  kind: "tool";
  id: string | null;
  name: string;
  /** What people see in the place of the name; null if the server has not said. */
  title: string | null;
  args: unknown;
  status: ToolStatus;
  result: unknown;
  durationMs: number | null;
  /** What the user was asked, if the call needs approval. */
  question: { token: string; preview: string } | null;
}

export interface ImageItem extends ItemBase {
  kind: "image";
  url: string;
  caption: string | null;
}

/** Marks where a flyout was opened, so that it can be opened again. */
export interface FlyoutItem extends ItemBase {
  kind: "flyout";
  flyout: string;
  title: string;
}

/** An event in the conversation: a new session, the end of a call, a reminder. */
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
  /** The id of the call. */
  id: string | null;
  tool: string;
  title: string | null;
  args: Record<string, unknown>;
  preview: string;
  expiresAt: number;
}

export interface Reminder {
  /** Its id and its time. */
  key: string;
  message: string;
  due: number;
  kind: ReminderKind;
  /** Whether it was due while the page was not connected. */
  missed: boolean;
}

export interface Notice {
  key: string;
  kind: NoticeKind;
  text: string;
  code: string | null;
  durationMs: number;
  at: number;
  /** Whether it is shown as a toast now. The list keeps it in any case. */
  isToast: boolean;
}

export interface Energy {
  level: number;
  max: number;
  model: string | null;
  /** Null until a message has said how this level came about. */
  reason: EnergyReason | null;
  /** When there may be a better model, in Unix milliseconds; null if that is not known. */
  betterAt: number | null;
}

/** One line about what happens to keep the conversation going. */
export interface Episode {
  key: string;
  /**
   * restarting: the server will close the connection. reconnecting: there is none. back: the session continues.
   * new_session: it could not be continued. model: something has changed behind the session.
   */
  step: "restarting" | "reconnecting" | "back" | "new_session" | "model";
  tone: "calm" | "good" | "busy" | "bad";
  text: string;
  /** The code of the server's notice. */
  code: string | null;
  /** How long it is shown; null: until the next step. */
  durationMs: number | null;
}

/** How the user talks: not at all, hands-free, or while the key or the button is held. */
export type Talk = "off" | "hands_free" | "held";

export interface PageState {
  connection: Connection;
  /** Whether the server does not answer at the moment, although there is a connection. */
  isStalled: boolean;
  microphone: MicrophoneState;
  sound: SoundState;
  talk: Talk;
  server: State;
  sessionId: string | null;
  conversationId: string | null;
  items: readonly Item[];
  /** Typed messages that the server has queued behind the current answer. */
  queue: readonly QueuedText[];
  /** The ids of queued messages that the user wants back. */
  unqueuing: readonly string[];
  /** The text in the message box. */
  draft: string;
  flyouts: readonly Flyout[];
  /** The key of the flyout that is shown. */
  openFlyout: string | null;
  confirmations: readonly Confirmation[];
  /** The reminders that were not dismissed yet, the oldest first. */
  reminders: readonly Reminder[];
  /** The keys of all that were shown. */
  seenReminders: readonly string[];
  /** Whether the browser does not let the page ring. */
  isRingBlocked: boolean;
  /** The key of the picture that is shown in full size. */
  openImage: string | null;
  /** The id of the record of the knowledge base that is shown. */
  openRecord: string | null;
  /** The record that the user is writing. */
  recordDraft: RecordDraft;
  notices: readonly Notice[];
  energy: Readonly<Record<Mode, Energy | null>>;
  metrics: readonly TurnMetricsMessage[];
  block: { until: number; message: string } | null;
  episode: Episode | null;
  /** Whether a token was sent and refused. */
  isTokenRefused: boolean;
  /** Whether the server has a voice; null until that is known. */
  hasVoice: boolean | null;
  /** Whether calls are recorded; null if the server records none. */
  recording: { choice: RecordingChoice; active: boolean } | null;
  error: { text: string; isRetryable: boolean } | null;
  /** How much of the newest answer was played, and how much has arrived. */
  playback: { playedMs: number; receivedMs: number; isComplete: boolean; isPlaying: boolean };
  /** Milliseconds of speech per character, learned from complete answers. */
  msPerChar: number;
  answer: number;
  /** The highest turn number that the server has named in this session. */
  turn: number;
  /** How many keys were taken when the newest turn started: items with later keys were added since. */
  turnStart: number;
  lastN: number;
  keyCount: number;
}

/** The close code of a server that requires a token, or a different one. */
export const TOKEN_NEEDED = 4401;

/** The rate of a calm voice, used until one was measured. */
const MS_PER_CHAR = 80;

export const NOT_PLAYED = { playedMs: 0, receivedMs: 0, isComplete: false, isPlaying: false } as const;

export function initialState(): PageState {
  return {
    connection: { state: "connecting", attempt: 0 },
    isStalled: false,
    microphone: { state: "off" },
    sound: { state: "off" },
    talk: "off",
    server: "idle",
    sessionId: null,
    conversationId: null,
    items: [],
    queue: [],
    unqueuing: [],
    draft: "",
    flyouts: [],
    openFlyout: null,
    confirmations: [],
    reminders: [],
    seenReminders: [],
    isRingBlocked: false,
    openImage: null,
    openRecord: null,
    recordDraft: EMPTY_DRAFT,
    notices: [],
    energy: { voice: null, text: null },
    metrics: [],
    block: null,
    episode: null,
    isTokenRefused: false,
    hasVoice: null,
    recording: null,
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

/** Returns a key that no other item of this page has. */
export function nextKey(state: PageState): [PageState, string] {
  return [{ ...state, keyCount: state.keyCount + 1 }, `k${state.keyCount + 1}`];
}

type NewItem<T> = T extends Item ? Omit<T, "key" | "turn"> & { turn?: number | null } : never;

/** Adds an item at the end of the thread or, if later turns are already shown, at the end of its own turn. */
export function append(state: PageState, item: NewItem<Item>): PageState {
  const [next, key] = nextKey(state);
  return inTurnOrder({ ...next, items: [...next.items, { turn: null, ...item, key } as Item] }, key);
}

/** Moves an item up to its own turn: what the user said to the start of it, anything else to the end. */
export function inTurnOrder(state: PageState, key: string): PageState {
  const from = state.items.findIndex((item) => item.key === key);
  const moved = state.items[from]!;
  const { turn } = moved;
  if (turn === null) return state;
  const isBelow = (other: number) => (moved.kind === "user" ? other >= turn : other > turn);
  const to = state.items.slice(0, from).findIndex((item) => item.turn !== null && isBelow(item.turn));
  return to < 0 ? state : { ...state, items: state.items.toSpliced(from, 1).toSpliced(to, 0, moved) };
}

/** Whether the item was added since the newest turn started. */
export function isOfNewestTurn(state: PageState, item: Item): boolean {
  return Number(item.key.slice(1)) > state.turnStart;
}

export function replace<T extends Item>(state: PageState, item: T, changed: Partial<T>): PageState {
  return { ...state, items: state.items.map((each) => (each === item ? { ...each, ...changed } : each)) };
}

export function remove(state: PageState, item: Item): PageState {
  return { ...state, items: state.items.filter((each) => each !== item) };
}

/** Finds the oldest matching item of the user. */
export function findUser(state: PageState, matches: (item: UserItem) => boolean): UserItem | undefined {
  return state.items.find((item): item is UserItem => item.kind === "user" && matches(item));
}
