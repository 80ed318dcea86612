// The client wire, version 1. Made by `make reference`: change the structs in src/antiphon/protocol/, not this file.

export const MICROPHONE_HZ = 16000;
export const SPEECH_HZ = 22050;
export const MAX_TEXT = 8000;
export const MAX_PENDING_REQUEST = 200;
export const MAX_INITIAL_MESSAGES = 100;

/** The close codes of the server, and whether to reconnect after them. */
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

export type ErrorCode = "bad_json" | "unknown_type" | "bad_message" | "bad_settings" | "bad_audio" | "too_large" | "hello_late" | "resume_rejected" | "unknown_conversation" | "busy" | "model_failed" | "unavailable" | "conversation_gone" | "not_recorded" | "always_recorded" | "internal" | "unauthenticated" | "blocked" | "too_fast";

export interface NumberedMessage {
  /** Counts the server's messages and binary frames from 1 within the session. It is set when the message is sent. */
  n: number;
}

/** Introduces the client and says what it wants. Optional, but it must be the first message. */
export interface HelloMessage {
  type: "hello";
  /** An access token. Required if the server requires authentication and the Authorization header has none. */
  token?: string | null;
  /** The newest handle of the session to resume. */
  resume?: string | null;
  /** The highest `n` that the client has received; later messages are sent again. */
  last_n?: number | null;
  /** The conversation to continue. Absent: a new one. */
  conversation_id?: string | null;
  /** Absent: voice, or the mode of the resumed session. */
  mode?: Mode | null;
  /** How the server sends speech: "json" as `audio` messages, "binary" as binary frames. */
  audio?: AudioForm;
  /** Earlier turns as context for a new conversation, oldest first. */
  initial_messages?: InitialMessage[];
  /** What the client can do beyond the basic messages: "hold" if it follows `hold` and `resume`, "recording" if it
shows `recording`. */
  features?: string[];
  /** The client's name and version, for the log. */
  client?: string | null;
}

export type Mode = "text" | "voice";

export type AudioForm = "binary" | "json";

/** An earlier turn that the client provides as context for a new conversation. */
export interface InitialMessage {
  role: Role;
  content: string;
}

export type Role = "assistant" | "user";

/** The microphone is open. In text mode this starts voice, like `start_voice`. */
export interface StartListeningMessage {
  type: "start_listening";
}

/** The microphone is closed. The speech so far is the user's turn. */
export interface StopListeningMessage {
  type: "stop_listening";
}

/** Stops the answer now. */
export interface InterruptMessage {
  type: "interrupt";
  /** How much of the answer was played, in milliseconds. */
  played_ms?: number | null;
}

/** All audio of the answer was played. Ignored while more audio is to come. */
export interface PlaybackDoneMessage {
  type: "playback_done";
  turn?: number | null;
}

/** Changes the given settings. If one of them is invalid, none is changed. */
export interface SettingsMessage {
  type: "settings";
  theme?: string | null;
  /** The speed of speech, in percent of the normal speed. */
  voice_speed?: number | null;
  /** The volume in percent. The client applies it; the server only stores it. */
  volume?: number | null;
  /** An id from `GET /api/voices`. */
  voice?: string | null;
  /** Whether a call without history begins with a greeting. */
  greeting?: boolean | null;
  /** Whether the client wants interim transcripts. */
  captions?: boolean | null;
}

/** Deletes the turns of the conversation. The state does not change. */
export interface ClearConversationMessage {
  type: "clear_conversation";
}

/** Plays a short sample of a voice. The state does not change. */
export interface TestAudioMessage {
  type: "test_audio";
  voice?: string | null;
}

/** A typed message, in either mode, also during a call. It waits while another answer is in progress (`queued`). */
export interface TextMessage {
  type: "text_message";
  text: string;
}

/** Withdraws a typed message that is still waiting. Answered by `queued`. */
export interface UnqueueMessage {
  type: "unqueue";
  id: string;
}

/** Reports how much of a turn was played, at most four times a second. */
export interface PlaybackMessage {
  type: "playback";
  turn: number;
  /** How much of the turn's audio was played, in milliseconds. */
  played_ms: number;
}

/** The user's answer to a `confirmation_request`. */
export interface ConfirmMessage {
  type: "confirm";
  confirmation_token: string;
  approved: boolean;
}

/** Switches from text to voice. */
export interface StartVoiceMessage {
  type: "start_voice";
  /** A request to answer first. */
  pending_request?: string | null;
}

/** Switches from voice to text. */
export interface EndVoiceMessage {
  type: "end_voice";
}

/** Begins or stops recording the calls of this conversation, if the server lets the user choose. Answered by
    `recording`. */
export interface RecordMessage {
  type: "record";
  on: boolean;
}

/** Continues an earlier conversation. */
export interface LoadConversationMessage {
  type: "load_conversation";
  conversation_id: string;
}

/** Answered by `pong` with the same `t`. */
export interface PingMessage {
  type: "ping";
  /** Any number, such as the client's own time. */
  t: number;
}

/** The new state. It is the first message of every connection. */
export interface StateChangedMessage extends NumberedMessage {
  type: "state";
  state: State;
}

/** idle: Not listening. listening: The user may speak. processing: The answer is in progress. speaking: The answer is being played. interrupted: The user interrupted the answer; the next state follows at once. */
export type State = "idle" | "interrupted" | "listening" | "processing" | "speaking";

/** What the user said, as far as it is known. */
export interface TranscriptMessage extends NumberedMessage {
  type: "transcript";
  text: string;
  /** A final transcript is sent after it is stored; interim ones are sent while the user speaks. */
  is_final: boolean;
  /** The turn that it belongs to. A transcript may come after the answer of its turn, or never. */
  turn: number | null;
}

/** The next piece of the answer. */
export interface ResponseChunkMessage extends NumberedMessage {
  type: "response_chunk";
  /** Only the new text. */
  text: string;
  is_first: boolean;
  turn: number | null;
}

/** The typed messages that wait for the current answer to end, oldest first. Sent whenever the list changes. */
export interface QueuedMessage extends NumberedMessage {
  type: "queued";
  messages: QueuedText[];
}

/** A typed message that is waiting. */
export interface QueuedText {
  id: string;
  text: string;
}

/** The whole answer. It comes after its chunks and replaces them. Audio may come before it. */
export interface ResponseMessage extends NumberedMessage {
  type: "response";
  text: string;
  turn: number | null;
  /** The sources that the tools of this turn have returned, in their order. */
  citations: Citation[];
}

/** A source of an answer. */
export interface Citation {
  /** The id of a record of the knowledge base, which `GET /api/kb/{id}` returns; or another name of the source. */
  id: string;
  title: string;
  url: string | null;
}

/** A clause or a sentence of speech. */
export interface AudioMessage extends NumberedMessage {
  type: "audio";
  /** A WAV file in base64: 22,050 Hz, mono, 16 bits. */
  data: string;
  /** The turn that it belongs to; 0 for a voice sample, which belongs to none. */
  turn: number;
  /** Counts the pieces of a turn from 0. */
  seq: number;
  /** Whether this is the last audio of the turn. */
  last: boolean;
}

/** Stop playing at once, and keep the rest: somebody may speak. `resume` or the state `interrupted` follows. */
export interface HoldMessage extends NumberedMessage {
  type: "hold";
  /** The answer to hold. Only clients whose `hello` has the feature "hold" are told. */
  turn: number;
}

/** It was a noise, or an "okay": go on playing where the answer was held. */
export interface ResumeMessage extends NumberedMessage {
  type: "resume";
  turn: number;
}

/** A tool is about to run. */
export interface ToolCallMessage extends NumberedMessage {
  type: "tool_call";
  name: string;
  /** The arguments as the model gave them: an object, unless the model made a mistake. */
  args: unknown;
  /** The `tool_result` has the same id. */
  id: string | null;
  /** The tool's name for people, such as "Add to a list". Null if there is no such tool. */
  title: string | null;
}

/** The result of a tool call. */
export interface ToolResultMessage extends NumberedMessage {
  type: "tool_result";
  name: string;
  /** The tool's data, or {"error": …}. */
  result: unknown;
  id: string | null;
  ok: boolean;
  duration_ms: number | null;
}

/** Content to show beside the conversation. It comes between the `tool_call` and the `tool_result`. */
export interface FlyoutMessage extends NumberedMessage {
  type: "flyout";
  flyout_type: FlyoutType;
  /** Text or a URL, never markup. */
  content: string;
  /** The language of source text, such as "python". */
  language: string | null;
  title: string | null;
}

/** browser: The content is a URL. code: The content is source text. terminal: The content is text that is added to the panel. */
export type FlyoutType = "browser" | "code" | "terminal";

/** Something went wrong. */
export interface ErrorMessage extends NumberedMessage {
  type: "error";
  /** A sentence to show to the user. */
  message: string;
  /** One of the error codes. */
  code: string;
  /** Whether another attempt may succeed. */
  retryable: boolean;
}

/** The session of this connection. Sent again with each new handle. */
export interface SessionMessage extends NumberedMessage {
  type: "session";
  session_id: string;
  conversation_id: string;
  /** The handle for resuming the session, which replaces the previous one; keep it in memory only. The previous handle
stays valid until this one is used, or until the client sends anything on this connection. */
  resume: string;
  resumed: boolean;
  mode: Mode;
  tools_version: string;
  /** How many seconds the handle stays valid after the last use. */
  expires_in_s: number;
  /** Null on a server without voice. */
  energy: EnergyLevels | null;
}

/** The quality levels of the models in use; 0 means exhausted. */
export interface EnergyLevels {
  /** 0 to 3. */
  voice: number;
  /** 0 to 2. */
  text: number;
}

/** The server will close this connection. Reconnect with the handle. */
export interface GoAwayMessage extends NumberedMessage {
  type: "go_away";
  time_left_ms: number;
  reason: string;
  resume: string | null;
}

/** The model has finished this answer, which may still be playing. */
export interface GenerationCompleteMessage extends NumberedMessage {
  type: "generation_complete";
  turn: number;
}

/** The conversation continues in voice: the client opens the microphone and sends `start_voice`. */
export interface VoiceSessionStartMessage extends NumberedMessage {
  type: "voice_session_start";
  session_id: string;
  /** The request that will be answered first. */
  pending_request: string | null;
}

/** The call is over; the conversation continues in text. */
export interface EndVoiceSessionMessage extends NumberedMessage {
  type: "end_voice_session";
  reason: string;
  final_message: string | null;
}

/** This user is blocked. */
export interface TimeoutMessage extends NumberedMessage {
  type: "timeout";
  /** Unix time in milliseconds. */
  until: number;
  duration_seconds: number;
  message: string;
}

/** Asks the user to approve a call exactly as it is shown. Answered by `confirm`. */
export interface ConfirmationRequestMessage extends NumberedMessage {
  type: "confirmation_request";
  confirmation_token: string;
  tool: string;
  args: Record<string, unknown>;
  /** A description of what will happen. */
  preview: string;
  /** Unix time in milliseconds. */
  expires_at: number;
  /** The `id` of the `tool_call` that waits for the answer. The `tool_result` of an approved call has the same id. */
  id: string | null;
  /** The tool's name for people. */
  title: string | null;
}

/** A confirmation request was answered, or it expired. */
export interface ConfirmationResolvedMessage extends NumberedMessage {
  type: "confirmation_resolved";
  confirmation_token: string;
  outcome: Outcome;
}

export type Outcome = "approved" | "denied" | "expired";

/** The model in use has changed, or there is none any more. */
export interface EnergyMessage extends NumberedMessage {
  type: "energy";
  mode: Mode;
  level: number;
  max: number;
  previous: number;
  reason: EnergyReason;
  /** Null at level 0. */
  model: string | null;
  resumable: boolean;
  /** Whether the new model starts from a summary instead of the old model's handle. */
  requires_fallback: boolean;
  /** In how many seconds a better model may be used again. Null: it is not known, or nothing prevents it. */
  again_in_s: number | null;
}

export type EnergyReason = "manual" | "rate-limit-exceeded" | "session-reset";

/** A short notification. */
export interface NoticeMessage extends NumberedMessage {
  type: "notice";
  kind: NoticeKind;
  text: string;
  /** A code for programs. */
  code: string | null;
  /** How long to show it. Null: the client decides. */
  duration_ms: number | null;
}

export type NoticeKind = "error" | "info" | "success" | "warning";

/** How long the parts of a turn took, in milliseconds. Null: the turn had no such part. */
export interface TurnMetricsMessage extends NumberedMessage {
  type: "turn_metrics";
  turn: number;
  /** From the end of the user's speech to the decision that the turn is over. */
  end_of_turn_ms: number | null;
  /** How long recognition took. It may start before the turn is over, so the total does not include all of it. */
  stt_ms: number | null;
  /** From the final transcript to the first word of the answer. */
  first_token_ms: number | null;
  /** From the first word to the first audio. */
  first_audio_ms: number | null;
  /** From the end of the user's speech to the first audio of the answer. */
  total_ms: number | null;
}

/** The turns of the conversation that was resumed or loaded, oldest first. */
export interface HistoryMessage extends NumberedMessage {
  type: "history";
  conversation_id: string;
  turns: HistoryTurn[];
}

/** One turn of a conversation. */
export interface HistoryTurn {
  role: Role;
  /** Empty for tool calls without a text after them. */
  content: string;
  spoken: boolean;
  /** Unix time in milliseconds. */
  at: number | null;
  /** The tool calls before this text, in order. A long conversation has only its newest calls. */
  calls: HistoryCall[];
}

/** A tool call of an earlier turn. */
export interface HistoryCall {
  id: string;
  name: string;
  /** As in `tool_call`. If the JSON is longer than 2,000 bytes, only the beginning of its text is given. */
  args: unknown;
  /** As in `tool_result`, shortened in the same way. Null: unknown. */
  result: unknown;
  /** Null: the outcome is unknown. */
  ok: boolean | null;
  /** As in `tool_call`. */
  title: string | null;
}

/** A reminder, a timer or an alarm rings. In a call, the server also says it. */
export interface ReminderMessage extends NumberedMessage {
  type: "reminder";
  /** It is different each time that a reminder rings. */
  id: string;
  /** The text to show. */
  message: string;
  /** Unix time in milliseconds. */
  due: number;
  kind: ReminderKind;
  /** Whether the time had passed for more than a minute, since no client of the user was connected. */
  missed: boolean;
}

export type ReminderKind = "alarm" | "reminder" | "timer";

/** An image that was generated or found. */
export interface ImageMessage extends NumberedMessage {
  type: "image";
  url: string;
  caption: string | null;
}

/** The settings in force. */
export interface SettingsUpdatedMessage extends NumberedMessage {
  type: "settings_updated";
  theme: string | null;
  /** The speed of speech, in percent of the normal speed. */
  voice_speed: number;
  /** The volume in percent. */
  volume: number;
  voice: string | null;
  greeting: boolean;
  captions: boolean;
}

/** Whether calls are recorded, which clients show clearly. It follows `session`, and comes whenever it changes. A
    server that records nothing does not send it. */
export interface RecordingMessage extends NumberedMessage {
  type: "recording";
  choice: RecordingChoice;
  /** Whether a call is being recorded now. */
  active: boolean;
}

/** off: Calls of this conversation are not recorded. `record` changes that. on: Calls of this conversation are recorded, since the user wants it. `record` changes that. always: This server records every call. */
export type RecordingChoice = "always" | "off" | "on";

/** The answer to a `ping`. */
export interface PongMessage extends NumberedMessage {
  type: "pong";
  /** The same as in the `ping`. */
  t: number;
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
  record: RecordMessage;
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
  hold: HoldMessage;
  resume: ResumeMessage;
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
  recording: RecordingMessage;
  pong: PongMessage;
}

/** Any message that the server sends as text. */
export type ServerMessage = ServerMessages[keyof ServerMessages];

/** Clients ignore all other types. */
export const SERVER_TYPES: ReadonlySet<string> = new Set(["state", "transcript", "response_chunk", "queued", "response", "audio", "hold", "resume", "tool_call", "tool_result", "flyout", "error", "session", "go_away", "generation_complete", "voice_session_start", "end_voice_session", "timeout", "confirmation_request", "confirmation_resolved", "energy", "notice", "turn_metrics", "history", "reminder", "image", "settings_updated", "recording", "pong"]);
