// The client wire, version 1. Made by `python -m antiphon.protocol.typescript --write`: change the structs in
// src/antiphon/protocol/, not this file.

export const MICROPHONE_HZ = 16000;
export const SPEECH_HZ = 22050;
export const MAX_TEXT = 8000;
export const MAX_PENDING_REQUEST = 200;
export const MAX_INITIAL_MESSAGES = 100;

/** How the server closes a connection, and whether to come back then. */
export const CLOSES: Readonly<Record<number, { reason: string; comeBack: boolean }>> = {
  1000: { reason: "the session is over", comeBack: false },
  1007: { reason: "a text frame is not UTF-8", comeBack: true },
  1009: { reason: "a frame is larger than 64 KiB", comeBack: true },
  1011: { reason: "an error of the server; the session can be resumed", comeBack: true },
  1012: { reason: "the server restarts; the session can be resumed", comeBack: true },
  1013: { reason: "too many connections; try again later", comeBack: true },
  4401: { reason: "a valid token is required", comeBack: false },
  4403: { reason: "this user is blocked for now", comeBack: false },
  4408: { reason: "no hello within 10 seconds", comeBack: false },
  4409: { reason: "another connection has taken over this session", comeBack: false },
  4413: { reason: "too much is waiting to be read by this client", comeBack: true },
  4429: { reason: "messages come too fast, or audio is more than 30 s ahead of speech", comeBack: true },
};

export type ErrorCode = "bad_json" | "unknown_type" | "bad_message" | "bad_settings" | "bad_audio" | "too_large" | "hello_late" | "resume_rejected" | "unknown_conversation" | "busy" | "model_failed" | "unavailable" | "conversation_gone" | "internal" | "unauthenticated" | "blocked" | "too_fast";

/** Who the client is and what it wants. Optional, and the first message if it comes at all. */
export interface HelloMessage {
  type: "hello";
  /** Required where the server asks for authentication, unless it came in the Authorization header. */
  token?: string | null;
  /** The newest handle of the session to go on with. */
  resume?: string | null;
  /** The highest `n` that the client has seen; what came after it is sent again. */
  last_n?: number | null;
  /** An earlier conversation to go on in. Absent: a new one. */
  conversation_id?: string | null;
  /** Absent: voice, or what a resumed session was in. */
  mode?: Mode | null;
  /** How to send speech: "json" as `audio` messages, "binary" as binary frames. */
  audio?: AudioForm;
  /** What was said elsewhere before, oldest first: context of a new conversation. */
  initial_messages?: InitialMessage[];
  /** Name and version, for the log. */
  client?: string | null;
}

export type Mode = "text" | "voice";

export type AudioForm = "binary" | "json";

/** A turn that the client brings along as context of a new conversation. */
export interface InitialMessage {
  role: Role;
  content: string;
}

export type Role = "assistant" | "user";

/** The microphone is open. In text mode it starts voice, as `start_voice` does. */
export interface StartListeningMessage {
  type: "start_listening";
}

/** The microphone is closed: speech so far is the user's turn. */
export interface StopListeningMessage {
  type: "stop_listening";
}

/** Stop speaking now. */
export interface InterruptMessage {
  type: "interrupt";
  /** Milliseconds of the answer that were played. */
  played_ms?: number | null;
}

/** All audio of the answer was played. Ignored as long as there is more to play. */
export interface PlaybackDoneMessage {
  type: "playback_done";
  turn?: number | null;
}

/** Changes the settings that are given. If one of them is wrong, none is changed. */
export interface SettingsMessage {
  type: "settings";
  theme?: string | null;
  /** Percent of the normal speed of speech. */
  voice_speed?: number | null;
  /** Percent. The client plays; the server only stores it. */
  volume?: number | null;
  /** An id from `GET /api/voices`. */
  voice?: string | null;
  /** Whether a call without history begins with a greeting. */
  greeting?: boolean | null;
  /** Whether interim transcripts are wanted. */
  captions?: boolean | null;
}

/** Forget what was said. The state stays as it is. */
export interface ClearConversationMessage {
  type: "clear_conversation";
}

/** Say one short sample. The state stays as it is. */
export interface TestAudioMessage {
  type: "test_audio";
  voice?: string | null;
}

/** A typed message, in either mode, also during a call. While an answer is being made, it waits (`queued`). */
export interface TextMessage {
  type: "text_message";
  text: string;
}

/** Takes back a typed message that still waits. Answered by `queued`. */
export interface UnqueueMessage {
  type: "unqueue";
  id: string;
}

/** How much was heard. At most four a second. */
export interface PlaybackMessage {
  type: "playback";
  turn: number;
  /** Milliseconds of the turn's audio that were played. */
  played_ms: number;
}

/** The person's answer to a `confirmation_request`. */
export interface ConfirmMessage {
  type: "confirm";
  confirmation_token: string;
  approved: boolean;
}

/** From text to voice. */
export interface StartVoiceMessage {
  type: "start_voice";
  /** What to answer first. */
  pending_request?: string | null;
}

/** From voice to text. */
export interface EndVoiceMessage {
  type: "end_voice";
}

/** Go on in an earlier conversation. */
export interface LoadConversationMessage {
  type: "load_conversation";
  conversation_id: string;
}

/** Answered by `pong` with the same `t`. */
export interface PingMessage {
  type: "ping";
  /** The client's own time, in any unit. */
  t: number;
}

/** The state from now on. The first message of every connection is one. */
export interface StateChangedMessage {
  type: "state";
  state: State;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

/** idle: Not listening. listening: The user may speak. processing: An answer is being made. speaking: The answer is heard. interrupted: The user cut in; the next state follows at once. */
export type State = "idle" | "interrupted" | "listening" | "processing" | "speaking";

/** What the user said, as far as it is known. */
export interface TranscriptMessage {
  type: "transcript";
  text: string;
  /** A final one is sent after it is stored; interim ones come while the user speaks. */
  is_final: boolean;
  /** The turn that it belongs to. A transcript may come after the answer of its turn, or never. */
  turn: number | null;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

/** The next piece of the answer. */
export interface ResponseChunkMessage {
  type: "response_chunk";
  /** Only what is new. */
  text: string;
  is_first: boolean;
  turn: number | null;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

/** The typed messages that wait for the answer under way, oldest first. Sent whenever they change; empty: none. */
export interface QueuedMessage {
  type: "queued";
  messages: QueuedText[];
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

/** A typed message that waits for its turn. */
export interface QueuedText {
  id: string;
  text: string;
}

/** The whole answer, after its chunks: it replaces them. Audio may come before it. */
export interface ResponseMessage {
  type: "response";
  text: string;
  turn: number | null;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

/** A clause or a sentence of speech. */
export interface AudioMessage {
  type: "audio";
  /** A WAV file in base64: 22,050 Hz, mono, 16 bits. */
  data: string;
  /** The turn that it belongs to; 0: to none, as a sample of a voice. */
  turn: number;
  /** Counts the pieces of a turn from 0. */
  seq: number;
  /** No more audio comes for this turn. */
  last: boolean;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

/** A tool is about to run. */
export interface ToolCallMessage {
  type: "tool_call";
  name: string;
  /** As the model gave them: an object, unless the model erred. */
  args: unknown;
  /** The same as in the `tool_result`. */
  id: string | null;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

/** What came of a tool call. */
export interface ToolResultMessage {
  type: "tool_result";
  name: string;
  /** The tool's data, or {"error": …}. */
  result: unknown;
  id: string | null;
  ok: boolean;
  duration_ms: number | null;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

/** Something to show beside the conversation. Comes between its `tool_call` and its `tool_result`. */
export interface FlyoutMessage {
  type: "flyout";
  flyout_type: FlyoutType;
  /** Text or a URL, never markup. */
  content: string;
  /** Of source text, such as "python". */
  language: string | null;
  title: string | null;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

/** browser: The content is a URL. code: The content is source text. terminal: The content is text to be added to what the panel shows. */
export type FlyoutType = "browser" | "code" | "terminal";

/** Something went wrong. */
export interface ErrorMessage {
  type: "error";
  /** A sentence that can be shown. */
  message: string;
  /** One of the error codes. */
  code: string;
  /** Whether the same may succeed another time. */
  retryable: boolean;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

/** The session behind this connection. Sent again with each new handle. */
export interface SessionMessage {
  type: "session";
  session_id: string;
  conversation_id: string;
  /** The handle to come back with, in the place of the one before it; keep it in memory only. The one before it stays
good until this one was used, or until the client has sent anything on this connection. */
  resume: string;
  resumed: boolean;
  mode: Mode;
  tools_version: string;
  /** Seconds that the handle is valid after the last use. */
  expires_in_s: number;
  energy: EnergyLevels | null;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

/** How good the models in use are; 0 is exhausted. */
export interface EnergyLevels {
  /** 0 to 3. */
  voice: number;
  /** 0 to 2. */
  text: number;
}

/** The server will close this connection. Come back with the handle. */
export interface GoAwayMessage {
  type: "go_away";
  time_left_ms: number;
  reason: string;
  resume: string | null;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

/** The model has finished making this answer. It may still be playing. */
export interface GenerationCompleteMessage {
  type: "generation_complete";
  turn: number;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

/** The conversation goes on in voice: the client opens the microphone and sends `start_voice`. */
export interface VoiceSessionStartMessage {
  type: "voice_session_start";
  session_id: string;
  /** What will be answered first. */
  pending_request: string | null;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

/** The call is over; the conversation goes on in text. */
export interface EndVoiceSessionMessage {
  type: "end_voice_session";
  reason: string;
  final_message: string | null;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

/** This user is blocked. */
export interface TimeoutMessage {
  type: "timeout";
  /** Unix time in milliseconds. */
  until: number;
  duration_seconds: number;
  message: string;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

/** The person is asked to approve a call, exactly as it is shown. Answered by `confirm`. */
export interface ConfirmationRequestMessage {
  type: "confirmation_request";
  confirmation_token: string;
  tool: string;
  args: Record<string, unknown>;
  /** What will happen, in words. */
  preview: string;
  /** Unix time in milliseconds. */
  expires_at: number;
  /** The `id` of the `tool_call` that waits for the answer. The `tool_result` of an approved call has the same. */
  id: string | null;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

/** The question is settled, by whichever way. */
export interface ConfirmationResolvedMessage {
  type: "confirmation_resolved";
  confirmation_token: string;
  outcome: Outcome;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

export type Outcome = "approved" | "denied" | "expired";

/** Another model is in use, or none. */
export interface EnergyMessage {
  type: "energy";
  mode: Mode;
  level: number;
  max: number;
  previous: number;
  reason: EnergyReason;
  /** Null at level 0. */
  model: string | null;
  resumable: boolean;
  /** Whether the new model starts from a summary instead of the old one's handle. */
  requires_fallback: boolean;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

export type EnergyReason = "manual" | "rate-limit-exceeded" | "session-reset";

/** A short text that passes by. */
export interface NoticeMessage {
  type: "notice";
  kind: NoticeKind;
  text: string;
  /** What it is about, for programs. */
  code: string | null;
  /** How long to show it. Null: as the client likes. */
  duration_ms: number | null;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

export type NoticeKind = "error" | "info" | "success" | "warning";

/** Where the time of a turn went, in milliseconds. Null: the turn had no such part. */
export interface TurnMetricsMessage {
  type: "turn_metrics";
  turn: number;
  /** From the last sound of the user to the decision that the turn is over. */
  end_of_turn_ms: number | null;
  /** What recognition took. It may begin before the turn is over, so it is not all a part of the total. */
  stt_ms: number | null;
  /** From the text to the first word of the answer. */
  first_token_ms: number | null;
  /** From the first word to the first sound. */
  first_audio_ms: number | null;
  /** From the last sound of the user to the first sound of the answer. */
  total_ms: number | null;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

/** The turns of a conversation that was resumed or loaded, oldest first. */
export interface HistoryMessage {
  type: "history";
  conversation_id: string;
  turns: HistoryTurn[];
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

/** Who said what. */
export interface HistoryTurn {
  role: Role;
  /** Empty for calls that no words followed. */
  content: string;
  spoken: boolean;
  /** Unix time in milliseconds. */
  at: number | null;
  /** What the assistant called before it said this, in order. Of a long conversation, the newest calls only. */
  calls: HistoryCall[];
}

/** A tool call of an earlier turn. */
export interface HistoryCall {
  id: string;
  name: string;
  /** As in `tool_call`. What is longer than 2,000 bytes of JSON is given as the beginning of that text. */
  args: unknown;
  /** As in `tool_result`, shortened in the same way. Null if it is not known. */
  result: unknown;
  /** Null: the outcome is not known. */
  ok: boolean | null;
}

/** A reminder is due. */
export interface ReminderMessage {
  type: "reminder";
  id: string;
  message: string;
  /** Unix time in milliseconds. */
  due: number;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

/** A picture that was made or found. */
export interface ImageMessage {
  type: "image";
  url: string;
  caption: string | null;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

/** The settings in force. */
export interface SettingsUpdatedMessage {
  type: "settings_updated";
  theme: string | null;
  /** Percent of the normal speed of speech. */
  voice_speed: number;
  /** Percent. */
  volume: number;
  voice: string | null;
  greeting: boolean;
  captions: boolean;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

/** The answer to a `ping`. */
export interface PongMessage {
  type: "pong";
  /** The same as in the `ping`. */
  t: number;
  /** Counts the server's messages and binary frames from 1 within the session. Set when it is sent. */
  n: number;
}

export interface ClientMessages {
  hello: HelloMessage;
  start_listening: StartListeningMessage;
  stop_listening: StopListeningMessage;
  interrupt: InterruptMessage;
  playback_done: PlaybackDoneMessage;
  settings: SettingsMessage;
  clear_conversation: ClearConversationMessage;
  test_audio: TestAudioMessage;
  text_message: TextMessage;
  unqueue: UnqueueMessage;
  playback: PlaybackMessage;
  confirm: ConfirmMessage;
  start_voice: StartVoiceMessage;
  end_voice: EndVoiceMessage;
  load_conversation: LoadConversationMessage;
  ping: PingMessage;
}

/** Any message that a client sends as text. */
export type ClientMessage = ClientMessages[keyof ClientMessages];

export interface ServerMessages {
  state: StateChangedMessage;
  transcript: TranscriptMessage;
  response_chunk: ResponseChunkMessage;
  queued: QueuedMessage;
  response: ResponseMessage;
  audio: AudioMessage;
  tool_call: ToolCallMessage;
  tool_result: ToolResultMessage;
  flyout: FlyoutMessage;
  error: ErrorMessage;
  session: SessionMessage;
  go_away: GoAwayMessage;
  generation_complete: GenerationCompleteMessage;
  voice_session_start: VoiceSessionStartMessage;
  end_voice_session: EndVoiceSessionMessage;
  timeout: TimeoutMessage;
  confirmation_request: ConfirmationRequestMessage;
  confirmation_resolved: ConfirmationResolvedMessage;
  energy: EnergyMessage;
  notice: NoticeMessage;
  turn_metrics: TurnMetricsMessage;
  history: HistoryMessage;
  reminder: ReminderMessage;
  image: ImageMessage;
  settings_updated: SettingsUpdatedMessage;
  pong: PongMessage;
}

/** Any message that the server sends as text. */
export type ServerMessage = ServerMessages[keyof ServerMessages];

/** Clients ignore the types that are not among these. */
export const SERVER_TYPES: ReadonlySet<string> = new Set(["state", "transcript", "response_chunk", "queued", "response", "audio", "tool_call", "tool_result", "flyout", "error", "session", "go_away", "generation_complete", "voice_session_start", "end_voice_session", "timeout", "confirmation_request", "confirmation_resolved", "energy", "notice", "turn_metrics", "history", "reminder", "image", "settings_updated", "pong"]);
