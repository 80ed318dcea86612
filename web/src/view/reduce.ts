/** The page's one rule of change: state and event in, state out. No DOM, no clock, no network. */

import type { Connection, EnergyMessage, ServerMessage, SessionMessage, State } from "../client/antiphon";
import type { LocalEvent, ViewEvent } from "./events";
import { fail, notify, passNotice, refuse } from "./notices";
import { append, type Confirmation, type ConfirmationItem, type PageState, replace } from "./state";
import * as thread from "./thread";

const KEPT_METRICS = 50;
const VOICE_UNAVAILABLE = "voice_unavailable";
const POOL_MAX = { voice: 3, text: 2 } as const;
const OUTCOMES = { approved: "approved", denied: "denied", expired: "expired" } as const;

export function reduce(state: PageState, event: ViewEvent, now: number): PageState {
  if (!("n" in event)) return isLocal(event) ? applyLocal(state, event, now) : applyTold(state, event as ServerMessage, now);
  // A server that numbers its messages repeats some after a resume. The introduction's number is ahead of those.
  if (event.n > 0 && event.n <= state.lastN) return state;
  const isAhead = event.type === "session" && event.resumed;
  const counted = event.n > 0 && !isAhead ? { ...state, lastN: event.n } : state;
  return applyTold(counted, event, now);
}

const LOCAL: ReadonlySet<string> = new Set<LocalEvent["type"]>([
  "connection", "microphone", "sound", "playing", "talk", "said", "confirmation_answered", "confirmation_expired",
  "flyout_opened", "flyout_closed", "reminder_dismissed", "notice_passed", "noticed", "remarked", "failed", "error_dismissed",
  "block_over", "cleared",
]);

function isLocal(event: ViewEvent): event is LocalEvent {
  return LOCAL.has(event.type);
}

function applyTold(state: PageState, message: ServerMessage, now: number): PageState {
  switch (message.type) {
    case "state":
      return enter(state, message.state);
    case "transcript":
      return thread.hear({ ...state, error: null }, message.text, message.is_final, now);
    case "response_chunk":
      return thread.answer(state, message.text, message.is_first, now);
    case "response":
      return thread.finishAnswer(state, message.text, now);
    case "tool_call":
      return thread.callTool(state, message, now);
    case "tool_result":
      return thread.finishTool(state, message, now);
    case "flyout":
      return thread.openFlyout(state, { ...message, type: message.flyout_type }, now);
    case "image":
      return append(state, { kind: "image", url: message.url, caption: message.caption ?? null, at: now });
    case "history":
      return thread.loadHistory(state, message);
    case "session":
      return introduce(state, message);
    case "go_away":
      return thread.tell(
        { ...state, goAway: { at: now + message.time_left_ms, reason: message.reason } },
        `The server will close this connection and the page will come back by itself. ${message.reason}`.trim(),
        now,
      );
    case "end_voice_session":
      return thread.tell({ ...state, talk: "off", mode: "text" }, farewell(state, message.final_message), now);
    case "voice_session_start":
      return thread.tell({ ...state, mode: "voice" }, "The conversation goes on in voice.", now);
    case "timeout":
      return { ...state, block: { until: message.until, message: message.message }, talk: "off" };
    case "confirmation_request":
      return ask(state, message, now);
    case "confirmation_resolved":
      return settle(state, message.confirmation_token, OUTCOMES[message.outcome] ?? "expired");
    case "energy":
      return charge(state, message);
    case "notice": {
      const off = message.code === VOICE_UNAVAILABLE ? { ...state, talk: "off" as const } : state;
      return notify(off, { ...message, code: message.code ?? null, durationMs: message.duration_ms }, now);
    }
    case "turn_metrics":
      return { ...state, metrics: [...state.metrics, message].slice(-KEPT_METRICS) };
    case "reminder":
      if (state.reminders.some((each) => each.id === message.id)) return state;
      return thread.tell(
        { ...state, reminders: [...state.reminders, { id: message.id, message: message.message, due: message.due }] },
        `Reminder: ${message.message}`,
        now,
      );
    case "settings_updated":
      return { ...state, settings: message };
    case "error":
      return refuse(state, message, now);
    default:
      return state;
  }
}

/** The last words, unless the assistant has just said them. */
function farewell({ items }: PageState, words: string | null): string {
  const last = items.findLast((item) => item.kind === "assistant");
  return !words || last?.text.trim() === words.trim() ? "The call is over." : words;
}

function enter(state: PageState, server: State): PageState {
  const next = { ...state, server };
  if (server === "interrupted") return thread.interrupt(next, state.server === "speaking");
  // Whole answers have come before the state changes: what is still open then was given up.
  const isAtRest = server === "listening" || server === "idle";
  if (isAtRest && state.server === "processing") return thread.drop(next);
  return isAtRest ? thread.learnPace(next) : next;
}

function introduce(state: PageState, message: SessionMessage): PageState {
  const pool = (mode: "voice" | "text") => {
    const level = message.energy?.[mode];
    if (level === undefined) return state.energy[mode];
    return { max: POOL_MAX[mode], model: null, reason: null, ...state.energy[mode], level };
  };
  return {
    ...state,
    conversationId: message.conversation_id,
    mode: message.mode,
    energy: { voice: pool("voice"), text: pool("text") },
  };
}

function charge(state: PageState, { mode, level, max, model, reason }: EnergyMessage): PageState {
  return { ...state, energy: { ...state.energy, [mode]: { level, max: max || POOL_MAX[mode], model, reason } } };
}

function ask(
  state: PageState,
  message: { confirmation_token: string; tool: string; args: Record<string, unknown>; preview: string; expires_at: number },
  now: number,
): PageState {
  const { confirmation_token: token, tool, args, preview, expires_at: expiresAt } = message;
  if (findConfirmation(state, token) !== undefined) return state;
  const asked: Confirmation = { token, tool, args, preview, expiresAt };
  const shown = append(state, { kind: "confirmation", token, preview, outcome: "asked", at: now });
  return { ...shown, confirmations: [...shown.confirmations, asked] };
}

function settle(state: PageState, token: string, outcome: ConfirmationItem["outcome"]): PageState {
  const item = findConfirmation(state, token);
  const confirmations = state.confirmations.filter((each) => each.token !== token);
  const closed = { ...state, confirmations };
  return item === undefined ? closed : replace(closed, item, { outcome });
}

function findConfirmation(state: PageState, token: string): ConfirmationItem | undefined {
  return state.items.find((item): item is ConfirmationItem => item.kind === "confirmation" && item.token === token);
}

function applyLocal(state: PageState, event: LocalEvent, now: number): PageState {
  switch (event.type) {
    case "connection":
      return connect(state, event.connection, now);
    case "microphone": {
      const isGone = event.microphone.state === "failed" || event.microphone.state === "off";
      return { ...state, microphone: event.microphone, talk: isGone ? "off" : state.talk };
    }
    case "sound":
      return { ...state, sound: event.sound };
    case "playing": {
      const { playing: isPlaying, complete: isComplete, turn, playedMs, receivedMs } = event.playing;
      if (turn === 0) return state;
      return { ...state, heard: { turn, playedMs, receivedMs, isComplete, isPlaying } };
    }
    case "talk":
      return { ...state, talk: event.talk, error: event.talk === "off" ? state.error : null };
    case "said":
      return thread.say({ ...state, error: null }, event.text, now);
    case "confirmation_answered":
      return settle(state, event.token, event.approved ? "answered" : "denied");
    case "confirmation_expired":
      return settle(state, event.token, "expired");
    case "flyout_opened":
      return { ...state, openFlyout: event.flyout };
    case "flyout_closed":
      return { ...state, openFlyout: null };
    case "reminder_dismissed":
      return { ...state, reminders: state.reminders.filter((each) => each.id !== event.id) };
    case "notice_passed":
      return passNotice(state, event.key);
    case "noticed":
      return notify(state, event, now);
    case "remarked":
      return thread.tell(state, event.text, now);
    case "failed":
      return fail(state, event.text, false, null, now);
    case "error_dismissed":
      return { ...state, error: null };
    case "block_over":
      return { ...state, block: null };
    case "cleared":
      return { ...thread.clear(state), error: null };
  }
}

function connect(state: PageState, connection: Connection, now: number): PageState {
  const next = { ...state, connection };
  if (connection.state === "closed") return { ...thread.drop(thread.loseTools(next)), talk: "off" };
  if (connection.state !== "open") return next;
  const back = { ...next, goAway: null };
  if (connection.session === "resumed") {
    return notify(back, { kind: "success", text: "Reconnected. The session goes on.", code: "resumed" }, now);
  }
  // Another session counts from 1, and knows nothing of what was under way.
  const fresh = { ...thread.drop(thread.loseTools(back)), lastN: 0, confirmations: [] };
  if (connection.session === "first") return fresh;
  return thread.tell(fresh, `This is a new session. ${connection.reason ?? ""}`.trim(), now);
}
