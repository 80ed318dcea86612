/**
 * What happens to keep the conversation going, as one line. A restart of the server or a change of the model takes several
 * steps, and each step replaces the words of the one before it.
 */

import type { Connection, NoticeKind, NoticeMessage } from "../client/antiphon";
import { EXHAUSTED } from "../client/events";
import { logNotice, toastMs } from "./notices";
import { type Episode, nextKey, type PageState } from "./state";

/** The codes of notices about the model behind the session. */
const MODEL_CODES: ReadonlySet<string> = new Set([
  "reconnecting", "reconnected", "could_not_resume", "model_switched", EXHAUSTED, "local_model", "new_upstream",
]);
/** How long to wait for the word that the model is back. */
const LONGEST_RECONNECT_MS = 60_000;
const BACK_MS = 4000;
const NEW_SESSION_MS = 8000;
const BACK = "Back. The conversation goes on.";
const TONES: Readonly<Record<NoticeKind, Episode["tone"]>> = { info: "calm", success: "good", warning: "busy", error: "bad" };

type Line = Omit<Episode, "key">;

export function isAboutModel(message: NoticeMessage): boolean {
  return MODEL_CODES.has(message.code ?? "");
}

export function announceRestart(state: PageState, reason: string): PageState {
  const text = reason || "The server is restarting…";
  return show(state, { step: "restarting", tone: "busy", text, code: null, durationMs: null });
}

export function followConnection(state: PageState, connection: Connection, now: number): PageState {
  switch (connection.state) {
    case "connecting":
      return connection.attempt > 0 ? showLost(state) : { ...state, episode: null };
    case "waiting":
      return showLost(state);
    case "closed":
      return { ...state, episode: null };
    case "open":
      if (connection.session === "first") return { ...state, episode: null };
      return connection.session === "resumed" ? showBack(state, now) : showNewSession(state);
  }
}

function showLost(state: PageState): PageState {
  return show(state, { step: "reconnecting", tone: "busy", text: "Reconnecting…", code: null, durationMs: null });
}

function showBack(state: PageState, now: number): PageState {
  const logged = logNotice(state, BACK, "resumed", now, "success");
  return show(logged, { step: "back", tone: "good", text: BACK, code: null, durationMs: BACK_MS });
}

function showNewSession(state: PageState): PageState {
  const hasWords = state.items.some(({ kind }) => kind === "user" || kind === "assistant");
  const text = hasWords ? "This is a new session; the conversation was kept." : "This is a new session.";
  return show(state, { step: "new_session", tone: "calm", text, code: null, durationMs: NEW_SESSION_MS });
}

/** The server does not have the conversation that the new session should continue. Null if that is not what happened. */
export function showConversationGone(state: PageState): PageState | null {
  if (state.episode?.step !== "new_session") return null;
  return show(state, { ...state.episode, tone: "busy", text: "This is a new session. The server no longer has the conversation." });
}

/** A notice that repeats the line is not a new one, and the connection to the server goes before that to the model. */
export function followNotice(state: PageState, message: NoticeMessage, now: number): PageState {
  const { text, kind } = message;
  const code = message.code ?? null;
  if (state.episode?.code === code && state.episode.text === text) return state;
  const logged = logNotice(state, text, code, now, kind);
  if (state.episode?.step === "restarting" || state.episode?.step === "reconnecting") return logged;
  const durationMs = code === "reconnecting" ? LONGEST_RECONNECT_MS : toastMs(kind, message.duration_ms);
  return show(logged, { step: "model", tone: TONES[kind] ?? "calm", text, code, durationMs });
}

/** The line has been shown long enough, unless another one has replaced it. */
export function endEpisode(state: PageState, key: string): PageState {
  return state.episode?.key === key ? { ...state, episode: null } : state;
}

function show(state: PageState, line: Line): PageState {
  if (state.episode?.step === line.step && state.episode.text === line.text && line.code === null) return state;
  const [next, key] = nextKey(state);
  return { ...next, episode: { ...line, key } };
}
