/** The page's reducer: state and event in, state out. No DOM, no clock, no network. */

import type {
  Connection, MicrophoneState, NoticeKind, Playing, ServerMessage, SessionMessage, SoundState, State,
} from "../client/antiphon";
import { endsCall, EXHAUSTED, VOICE_UNAVAILABLE } from "../client/events";
import { SERVER_TYPES } from "../client/wire";
import { applyEnergy, applyLevels, applyReport } from "./energy";
import * as episode from "./episode";
import { showError, logNotice, notify, dismissNotice } from "./notices";
import type { EnergyReport } from "./records";
import { addReminder, dismissReminder } from "./reminders";
import type { RecordDraft } from "./knowledge";
import { append, type PageState, type Talk, TOKEN_NEEDED } from "./state";
import * as thread from "./thread";
import * as tools from "./tools";
import * as typed from "./typed";

/** The page's own events, besides the server's messages. */
export type LocalEvent =
  /** `hasToken` says whether a token was sent. */
  | { type: "connection"; connection: Connection; hasToken?: boolean }
  /** The server has stopped answering, or answers again. */
  | { type: "stalled"; isStalled: boolean }
  | { type: "microphone"; microphone: MicrophoneState }
  | { type: "sound"; sound: SoundState }
  | { type: "playing"; playing: Playing }
  | { type: "talk"; talk: Talk }
  /** The user has sent a typed message. */
  | { type: "message_typed"; text: string }
  /** The user sends a failed message again. */
  | { type: "message_retried"; key: string }
  | { type: "draft_changed"; text: string }
  | { type: "unqueue_requested"; ids: readonly string[] }
  | { type: "voice_checked"; hasVoice: boolean }
  | { type: "energy_reported"; report: EnergyReport }
  | { type: "episode_seen"; key: string }
  | { type: "confirmation_answered"; token: string; approved: boolean }
  | { type: "confirmation_expired"; token: string }
  | { type: "flyout_opened"; flyout: string }
  | { type: "flyout_closed" }
  | { type: "reminder_dismissed"; key: string }
  | { type: "ring_blocked"; isBlocked: boolean }
  | { type: "image_opened"; key: string }
  | { type: "image_closed" }
  | { type: "record_opened"; id: string }
  | { type: "record_closed" }
  | { type: "record_draft_changed"; changed: Partial<RecordDraft> }
  | { type: "notice_dismissed"; key: string }
  | { type: "notice_added"; kind: NoticeKind; text: string; code: string | null }
  /** Adds a line to the thread. */
  | { type: "event_added"; text: string }
  | { type: "error_raised"; text: string }
  | { type: "error_dismissed" }
  | { type: "block_ended" }
  /** Empties the thread, because it was cleared or another conversation starts. */
  | { type: "cleared" };

export type ViewEvent = ServerMessage | LocalEvent;

const KEPT_METRICS = 50;
const OUTCOMES = { approved: "approved", denied: "declined", expired: "expired" } as const;
/** Error codes that the page reports in its own words elsewhere. */
const SHOWN_ELSEWHERE: ReadonlySet<string> = new Set(["resume_rejected", "unauthenticated", "blocked"]);
/** The code of the notice that a session could not be resumed. */
const NEW_SESSION = "new_session";

export function reduce(state: PageState, event: ViewEvent, now: number): PageState {
  if (!("n" in event)) return isLocal(event) ? applyLocal(state, event, now) : applyMessage(state, event as ServerMessage, now);
  // After a resume the server replays messages, which keep their numbers. The number of `session` is ahead of them.
  if (event.n > 0 && event.n <= state.lastN) return state;
  const isAhead = event.type === "session" && event.resumed;
  const counted = event.n > 0 && !isAhead ? { ...state, lastN: event.n } : state;
  return applyMessage(counted, event, now);
}

function isLocal(event: ViewEvent): event is LocalEvent {
  return !SERVER_TYPES.has(event.type);
}

function applyMessage(state: PageState, message: ServerMessage, now: number): PageState {
  switch (message.type) {
    case "state":
      return enterState(state, message.state);
    case "transcript":
      return (message.is_final ? thread.addFinalTranscript : thread.addInterimTranscript)({ ...state, error: null }, withTurn(message), now);
    case "response_chunk":
      return thread.addAnswerChunk(state, withTurn(message), message.is_first, now);
    case "response":
      return thread.finishAnswer(state, { ...withTurn(message), citations: message.citations ?? [] }, now);
    case "tool_call":
      return tools.addCall(state, message, now);
    case "tool_result":
      return tools.addResult(state, message, now);
    case "flyout":
      return thread.openFlyout(state, { ...message, type: message.flyout_type }, now);
    case "image":
      return append(state, { kind: "image", url: message.url, caption: message.caption ?? null, at: now });
    case "history":
      return thread.loadHistory(state, message);
    case "session":
      return applySession(state, message);
    case "recording":
      return { ...state, recording: { choice: message.choice, active: message.active } };
    case "queued":
      return typed.updateQueue(state, message.messages, now);
    case "go_away":
      return episode.announceRestart(state, message.reason);
    case "end_voice_session":
      return thread.addEvent({ ...state, talk: "off" }, describeCallEnd(state, message.final_message), now);
    case "voice_session_start":
      return thread.addEvent(state, "Switched to voice.", now);
    case "timeout":
      return { ...state, block: { until: message.until, message: message.message }, talk: "off" };
    case "confirmation_request":
      return tools.addConfirmation(state, message, now);
    case "confirmation_resolved":
      return tools.resolveConfirmation(state, message.confirmation_token, OUTCOMES[message.outcome] ?? "expired");
    case "energy":
      return applyEnergy(state, message, now);
    case "notice": {
      const off = endsCall(message) ? { ...state, talk: "off" as const } : state;
      const isExhausted = message.code === VOICE_UNAVAILABLE && state.energy.voice?.level === 0;
      if (isExhausted) return episode.followNotice(off, { ...message, code: EXHAUSTED }, now);
      if (episode.isAboutModel(message)) return episode.followNotice(off, message, now);
      // The line about the connection already says so.
      if (message.code === NEW_SESSION) return logNotice(state, message.text, NEW_SESSION, now, message.kind);
      return notify(off, { ...message, code: message.code ?? null, durationMs: message.duration_ms }, now);
    }
    case "turn_metrics":
      return { ...state, metrics: [...state.metrics, message].slice(-KEPT_METRICS) };
    case "reminder":
      return addReminder(state, message, now);
    case "error":
      if (message.code === "unknown_conversation") {
        const gone = episode.showConversationGone(state);
        if (gone !== null) return logNotice(gone, message.message, message.code, now);
      }
      return SHOWN_ELSEWHERE.has(message.code) ? state : typed.applyError(state, message, now);
    default:
      return state;
  }
}

/** Servers that do not number their turns omit the number, and 0 means that the text belongs to no turn. */
function withTurn({ text, turn }: { text: string; turn?: number | null }): { text: string; turn: number | null } {
  return { text, turn: turn || null };
}

/** The assistant's last words, unless it has just said them. */
function describeCallEnd({ items }: PageState, words: string | null): string {
  const last = items.findLast((item) => item.kind === "assistant");
  return !words || last?.text.trim() === words.trim() ? "Call ended." : words;
}

function enterState(before: PageState, server: State): PageState {
  // Complete answers arrive before the state changes: what is still streaming then was abandoned.
  const isAtRest = server === "listening" || server === "idle";
  const state = isAtRest ? typed.markQueuedUnsent(before) : before;
  const next = { ...state, server };
  if (server === "processing" && state.server !== "processing" && state.server !== "speaking") return thread.beginTurn(next);
  if (server === "interrupted") return thread.markInterrupted(next, state.server === "speaking");
  if (isAtRest && state.server === "processing") return thread.dropStreaming(next);
  return isAtRest ? thread.learnSpeechRate(next) : next;
}

function applySession(state: PageState, message: SessionMessage): PageState {
  // The server tells again after this whether it records the calls of a new session.
  const recording = message.resumed ? state.recording : null;
  const next = { ...state, recording, sessionId: message.session_id, conversationId: message.conversation_id };
  return applyLevels(next, message.energy);
}

function applyLocal(state: PageState, event: LocalEvent, now: number): PageState {
  switch (event.type) {
    case "connection":
      return applyConnection(state, event.connection, event.hasToken ?? false, now);
    case "stalled":
      return { ...state, isStalled: event.isStalled };
    case "microphone": {
      const isGone = event.microphone.state === "failed" || event.microphone.state === "off";
      return { ...state, microphone: event.microphone, talk: isGone ? "off" : state.talk };
    }
    case "sound":
      return { ...state, sound: event.sound };
    case "playing": {
      const { playing: isPlaying, complete: isComplete, turn, playedMs, receivedMs } = event.playing;
      if (turn === 0) return state;
      return { ...state, playback: { playedMs, receivedMs, isComplete, isPlaying } };
    }
    case "talk":
      return { ...state, talk: event.talk, error: event.talk === "off" ? state.error : null };
    case "message_typed":
      return typed.addTyped({ ...state, error: null }, event.text, now);
    case "message_retried":
      return typed.retryTyped({ ...state, error: null }, event.key, now);
    case "draft_changed":
      return { ...state, draft: event.text };
    case "unqueue_requested":
      return { ...state, unqueuing: [...state.unqueuing, ...event.ids] };
    case "voice_checked":
      return { ...state, hasVoice: event.hasVoice };
    case "energy_reported":
      return applyReport(state, event.report, now);
    case "episode_seen":
      return episode.endEpisode(state, event.key);
    case "confirmation_answered":
      return tools.resolveConfirmation(state, event.token, event.approved ? "approved" : "declined");
    case "confirmation_expired":
      return tools.resolveConfirmation(state, event.token, "expired");
    case "flyout_opened":
      return { ...state, openFlyout: event.flyout };
    case "flyout_closed":
      return { ...state, openFlyout: null };
    case "reminder_dismissed":
      return dismissReminder(state, event.key);
    case "ring_blocked":
      return { ...state, isRingBlocked: event.isBlocked };
    case "image_opened":
      return { ...state, openImage: event.key };
    case "image_closed":
      return { ...state, openImage: null };
    case "record_opened":
      return { ...state, openRecord: event.id };
    case "record_closed":
      return { ...state, openRecord: null };
    case "record_draft_changed":
      return { ...state, recordDraft: { ...state.recordDraft, ...event.changed } };
    case "notice_dismissed":
      return dismissNotice(state, event.key);
    case "notice_added":
      return notify(state, event, now);
    case "event_added":
      return thread.addEvent(state, event.text, now);
    case "error_raised":
      return showError(state, event.text, false, null, now);
    case "error_dismissed":
      return { ...state, error: null };
    case "block_ended":
      return { ...state, block: null };
    case "cleared":
      return { ...thread.clear(state), error: null };
  }
}

function applyConnection(state: PageState, connection: Connection, hasToken: boolean, now: number): PageState {
  const next = episode.followConnection({ ...state, connection }, connection, now);
  if (connection.state === "closed") {
    const isTokenRefused = hasToken && connection.code === TOKEN_NEEDED;
    return { ...thread.dropStreaming(tools.markCallsLost(next)), talk: "off", isTokenRefused };
  }
  if (connection.state !== "open" || connection.session === "resumed") return next;
  // A new session counts from 1 and knows nothing of the work in progress.
  const over = thread.dropStreaming(tools.expireUnapproved(tools.markCallsLost(next)));
  return { ...thread.forgetTurns(typed.markTypedLost(over, now)), lastN: 0, confirmations: [] };
}
