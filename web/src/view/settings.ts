/** The user's settings, stored in the browser. The resume handle is never stored. */

import type { InitialMessage } from "../client/antiphon";
import type { Reminder } from "./state";

export const THEMES = [
  "midnight",
  "redroom",
  "pink",
  "babyblue",
  "teal",
  "emerald",
  "sunset",
  "cyberpunk",
  "ocean",
  "rose",
] as const;
export type Theme = (typeof THEMES)[number];

/** The themes to use if the user has not chosen one. */
export const SYSTEM_THEMES: Readonly<Record<"light" | "dark", Theme>> = { light: "babyblue", dark: "midnight" };

export interface Settings {
  /** "system" follows the system's light or dark mode. */
  theme: Theme | "system";
  /** "" is the server's default. */
  voice: string;
  /** Percent. */
  speed: number;
  /** Percent. */
  volume: number;
  /** Device ids; "" is the system's default. */
  input: string;
  output: string;
  captions: boolean;
  greeting: boolean;
  timestamps: boolean;
  /** The `KeyboardEvent.code` of the push-to-talk key. */
  talkKey: string;
  /** Reduces motion even if the system does not ask for it. */
  reducedMotion: boolean;
  /** Whether reminders are shown by the system too, while the page is not in view. */
  notifications: boolean;
}

export const DEFAULTS: Readonly<Settings> = {
  theme: "system",
  voice: "",
  speed: 100,
  volume: 80,
  input: "",
  output: "",
  captions: true,
  greeting: true,
  timestamps: false,
  talkKey: "Space",
  reducedMotion: false,
  notifications: false,
};

const KEY = "antiphon.settings";
const CONVERSATION = "antiphon.conversation";
const BEGINNING = "antiphon.beginning";
const TOKEN = "antiphon.token";
const REMINDERS = "antiphon.reminders";

/** Storage may be full, forbidden, or contain anything. */
export function loadSettings(store: Storage | null): Settings {
  try {
    const stored: unknown = JSON.parse(store?.getItem(KEY) ?? "{}");
    return typeof stored === "object" && stored !== null ? sanitize(stored as Record<string, unknown>) : { ...DEFAULTS };
  } catch {
    return { ...DEFAULTS };
  }
}

function sanitize(stored: Record<string, unknown>): Settings {
  const text = (key: "voice" | "input" | "output" | "talkKey") => {
    const value = stored[key];
    return typeof value === "string" && value.length <= 256 ? value : DEFAULTS[key];
  };
  const flag = (key: "captions" | "greeting" | "timestamps" | "reducedMotion" | "notifications") => {
    const value = stored[key];
    return typeof value === "boolean" ? value : DEFAULTS[key];
  };
  const number = (key: "speed" | "volume", least: number, most: number) => {
    const value = stored[key];
    return typeof value === "number" && value >= least && value <= most ? Math.round(value) : DEFAULTS[key];
  };
  return {
    theme: THEMES.find((theme) => theme === stored["theme"]) ?? DEFAULTS.theme,
    voice: text("voice"),
    speed: number("speed", 50, 200),
    volume: number("volume", 0, 100),
    input: text("input"),
    output: text("output"),
    captions: flag("captions"),
    greeting: flag("greeting"),
    timestamps: flag("timestamps"),
    talkKey: text("talkKey") || DEFAULTS.talkKey,
    reducedMotion: flag("reducedMotion"),
    notifications: flag("notifications"),
  };
}

export function saveSettings(store: Storage | null, settings: Settings): void {
  write(store, KEY, JSON.stringify(settings));
}

/** What belongs to the tab: a reload continues its conversation, and another tab starts its own. */
export interface Tab {
  conversationId: string | null;
  /** The messages that a conversation starts with, until the server has stored it. */
  beginning: InitialMessage[];
  token: string | null;
  /** Reminders that were not dismissed. */
  reminders: Reminder[];
}

export function loadTab(store: Storage | null): Tab {
  return {
    conversationId: read(store, CONVERSATION),
    beginning: loadList(store, BEGINNING, isMessage),
    token: read(store, TOKEN),
    reminders: loadList(store, REMINDERS, isReminder),
  };
}

function loadList<T>(store: Storage | null, key: string, isValid: (value: unknown) => value is T): T[] {
  try {
    const stored: unknown = JSON.parse(read(store, key) ?? "[]");
    return Array.isArray(stored) && stored.every(isValid) ? stored : [];
  } catch {
    return [];
  }
}

function isMessage(value: unknown): value is InitialMessage {
  const { role, content } = (value ?? {}) as Partial<InitialMessage>;
  return (role === "user" || role === "assistant") && typeof content === "string" && content !== "";
}

function isReminder(value: unknown): value is Reminder {
  const { key, message, due, kind, missed } = (value ?? {}) as Partial<Reminder>;
  const isKind = kind === "reminder" || kind === "timer" || kind === "alarm";
  return typeof key === "string" && typeof message === "string" && typeof due === "number" && isKind && typeof missed === "boolean";
}

export function saveBeginning(store: Storage | null, messages: readonly InitialMessage[]): void {
  saveList(store, BEGINNING, messages);
}

export function saveReminders(store: Storage | null, reminders: readonly Reminder[]): void {
  saveList(store, REMINDERS, reminders);
}

function saveList(store: Storage | null, key: string, list: readonly unknown[]): void {
  write(store, key, list.length > 0 ? JSON.stringify(list) : null);
}

export function saveConversation(store: Storage | null, id: string | null): void {
  write(store, CONVERSATION, id);
}

export function saveToken(store: Storage | null, token: string | null): void {
  write(store, TOKEN, token);
}

function read(store: Storage | null, key: string): string | null {
  try {
    return store?.getItem(key) ?? null;
  } catch {
    return null;
  }
}

function write(store: Storage | null, key: string, value: string | null): void {
  try {
    if (value === null) store?.removeItem(key);
    else store?.setItem(key, value);
  } catch {
    // Without storage the value lasts until the page is closed.
  }
}

/** Even reading the property may be forbidden. */
export function browserStorage(kind: "localStorage" | "sessionStorage"): Storage | null {
  try {
    return window[kind];
  } catch {
    return null;
  }
}
