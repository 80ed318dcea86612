/** The client of an Antiphon server: call `new Antiphon({ … }).connect()`, then use its methods and typed events. */

import { createBargeIn, createVoiceGate } from "./barge-in";
import type { CapturedFrame } from "./capture";
import type { AntiphonEvents, Connection, Devices, Level, MicrophoneState, Playing, SoundState } from "./events";
import { createEmitter, endsCall } from "./events";
import { encodeMicrophone, type Incoming } from "./frames";
import { createListening } from "./listening";
import { createMicrophone, listDevices } from "./microphone";
import { createPlayback } from "./playback";
import { createPlayer } from "./player";
import { createSession, type Session } from "./session";
import { createSound } from "./sound";
import { fromBase64, parseWav } from "./wav";
import {
  type AudioForm,
  type HelloMessage,
  type InitialMessage,
  MICROPHONE_HZ,
  type Mode,
  type ServerMessage,
  type SettingsMessage,
  SPEECH_HZ,
  type State,
} from "./wire";

export type * from "./events";
export type * from "./wire";
export { MicrophoneError } from "./events";
export { MAX_PENDING_REQUEST, MAX_TEXT } from "./wire";

const MODULE_URL = import.meta.url;
const SOCKET_PATH = import.meta.env.DEV ? "/ws" : "ws";
const CLIENT = "antiphon-web/1";

export interface AntiphonOptions {
  /** The server's WebSocket address, such as "wss://example.org/ws". Default: the server that served this module. */
  url?: string;
  /** Needed if the server requires one. It is sent in the first message, never in the URL. */
  token?: string;
  /** The mode to start in. Default: text. */
  mode?: Mode;
  /** An earlier conversation to continue. */
  conversationId?: string;
  /** Earlier messages from elsewhere, oldest first, as context for a new conversation. */
  initialMessages?: InitialMessage[];
  /** The name and version of your program, for the server's log. */
  client?: string;
  /** "json" asks for speech as WAV files inside messages. Default: binary frames, which are a quarter smaller. */
  audio?: AudioForm;
  /** Whether the client itself turns the assistant down when something is loud, before the server decides. Default: true. */
  bargeIn?: boolean;
  /** Whether your page shows `recording` messages. Otherwise the server sends a `notice` when a call is recorded. Default: false. */
  showsRecording?: boolean;
}

export interface DeviceChoice {
  /** An id from `devices()`, or "" for the system's default. */
  input?: string;
  output?: string;
}

export class Antiphon {
  // The current values. Each has an event of the same name that carries the new value.
  connection: Connection = { state: "closed", code: 1000, reason: "Not connected yet." };
  stalled = false;
  microphone: MicrophoneState = { state: "off" };
  sound: SoundState = { state: "off" };
  level: Level = { input: 0, output: 0, speech: false };
  playing: Playing = { playing: false, turn: 0, playedMs: 0, receivedMs: 0, complete: false, ducked: false, held: false };

  /** The server's state. */
  state: State = "idle";
  mode: Mode;
  /** Save this to continue after a reload. It is null until something was said. (The resume handle stays in memory.) */
  conversationId: string | null;

  readonly #options: AntiphonOptions;
  readonly #events = createEmitter<AntiphonEvents>();
  readonly #session: Session;
  #token: string | undefined;
  /** The conversation of this session, even if nothing was said in it yet. */
  #sessionConversation: string | null = null;
  /** Whether the server has worked on a turn of this conversation. Before that, its speech is a greeting. */
  #hasTurn = false;
  /** Whether the server has only promised to store the initial messages: it does so with the first turn. */
  #isUnstored: boolean;

  readonly #sound = createSound((now) => this.#update("sound", now));
  readonly #player = createPlayer(this.#sound, {
    position: (at, level) => {
      this.#playback.position(at);
      // A late report about stopped playback would raise the level, and nothing would lower it again.
      if (this.playing.playing) this.#setLevel({ output: level });
    },
    ended: (at) => this.#playback.ended(at),
  });
  readonly #playback = createPlayback(
    this.#player,
    (message) => this.#session.send(message),
    (now) => {
      this.#update("playing", now);
      if (!now.playing) this.#setLevel({ output: 0 });
      this.#suspendIfQuiet();
    },
  );
  readonly #microphone = createMicrophone(this.#sound, {
    frame: (frame) => this.#frameCaptured(frame),
    changed: (now) => {
      this.#update("microphone", now);
      if (now.state !== "on") this.#setLevel({ input: 0, speech: false });
      if (now.state === "failed") this.#listening.microphoneLost();
      this.#suspendIfQuiet();
    },
  });
  readonly #listening = createListening(this.#microphone, (message) => this.#session.send(message));
  readonly #gate = createVoiceGate();
  readonly #bargeIn = createBargeIn();
  #isMuted = false;

  constructor(options: AntiphonOptions = {}) {
    this.#options = options;
    this.#token = options.token;
    this.mode = options.mode ?? "text";
    this.conversationId = options.conversationId ?? null;
    this.#isUnstored = options.initialMessages !== undefined;
    this.#session = createSession(options.url ?? socketUrl(), () => this.#hello(), {
      received: (incoming) => this.#receive(incoming),
      connection: (now) => this.#connectionChanged(now),
      stalled: (now) => this.#update("stalled", now),
    });
    if (typeof window === "undefined") return;
    navigator.mediaDevices?.addEventListener("devicechange", () => {
      this.devices().then((found) => this.#events.emit("devices", found), () => undefined);
    });
    // A page in the back/forward cache may return, and its session then continues.
    addEventListener("pagehide", (event) => {
      if (!event.persisted) this.close();
    });
  }

  /**
   * Calls the handler for every event of this type: a server message's `type`, or one of `ClientEvents`. Returns a
   * function that unsubscribes.
   */
  on<Type extends keyof AntiphonEvents>(type: Type, handler: (event: AntiphonEvents[Type]) => void): () => void {
    return this.#events.on(type, handler);
  }

  /** Connects, and reconnects whenever the connection is lost. If a retry is pending, it is made now. */
  connect(token?: string): void {
    this.#token = token ?? this.#token;
    this.#session.connect();
  }

  /**
   * Ends the session and closes the microphone and the audio output. `connect()` starts a new session in the same
   * conversation.
   */
  close(): void {
    this.#session.close();
    this.#listening.end();
    this.#playback.reset();
    this.#player.detach();
    this.#sound.close();
  }

  /**
   * Push-to-talk pressed: stops the assistant, opens the microphone and listens. Call it from a click or key handler.
   * Rejects with a `MicrophoneError`.
   */
  async startListening(): Promise<void> {
    this.interrupt();
    await this.#listening.start({ type: "start_listening" });
  }

  /** Push-to-talk released: what was said so far is the user's turn. The microphone closes ten seconds later. */
  stopListening(): void {
    this.#listening.stop();
  }

  /**
   * Starts a hands-free call. Call it from a click or key handler, or on `voice_session_start` with its request.
   * Rejects with a `MicrophoneError`.
   */
  async startVoice(pendingRequest?: string | null): Promise<void> {
    await this.#listening.start({ type: "start_voice", pending_request: pendingRequest || null });
  }

  /** Ends the call: closes the microphone and returns to text. */
  endVoice(): void {
    this.#listening.end();
    this.#stopPlayback();
    this.#session.send({ type: "end_voice" });
  }

  /**
   * Sends a typed message, in either mode, and stops the assistant's speech. Without a connection it is sent later;
   * while an answer is being generated the server queues it (`queued`).
   */
  say(text: string): void {
    const trimmed = text.trim();
    if (trimmed === "") return;
    const heard = this.#playback.stop();
    if (heard !== null) this.#session.send({ type: "playback", turn: heard.turn, played_ms: heard.playedMs });
    this.#session.send({ type: "text_message", text: trimmed });
  }

  /** Removes a queued message by its id from `queued`. The server replies with a new `queued`. */
  unqueue(id: string): void {
    this.#session.send({ type: "unqueue", id });
  }

  /**
   * Stops the assistant within 50 ms, without waiting for the server, as for a stop button. Does nothing if it is
   * neither generating nor speaking.
   */
  interrupt(): void {
    const heard = this.#stopPlayback();
    if (!this.#isBusy) return;
    this.#session.send({ type: "interrupt", ...(heard === null ? {} : { played_ms: heard.playedMs }) });
  }

  /** Sends the user's answer to a `confirmation_request`. */
  confirm(confirmationToken: string, approved: boolean): void {
    this.#session.send({ type: "confirm", confirmation_token: confirmationToken, approved });
  }

  /**
   * Changes settings. The server replies with `settings_updated`, or with an `error` that has the code `bad_settings`.
   */
  settings(changed: Omit<SettingsMessage, "type">): void {
    this.#session.send({ type: "settings", ...changed });
  }

  /** Begins or stops recording the calls of this conversation. The server replies with `recording`, or with an `error`. */
  record(on: boolean): void {
    this.#session.send({ type: "record", on });
  }

  /** Continues an earlier conversation. The server replies with `history`. */
  loadConversation(id: string): void {
    this.#playback.stop();
    this.#session.send({ type: "load_conversation", conversation_id: id });
  }

  clearConversation(): void {
    this.#session.send({ type: "clear_conversation" });
  }

  /** Plays one short sentence, to try a voice and the volume. Call it from a click or key handler. */
  testAudio(voice?: string): void {
    this.unlockSound();
    this.#session.send({ type: "test_audio", voice: voice ?? null });
  }

  /** A muted microphone stays open, but nothing is sent. The assistant keeps speaking: muting does not pause it. */
  mute(muted: boolean): void {
    this.#isMuted = muted;
    this.#microphone.mute(muted);
  }

  /** From 0 to 1. */
  setVolume(volume: number): void {
    this.#player.setVolume(volume);
  }

  /**
   * Takes effect at once, even during a call. Rejects with a `MicrophoneError` if the new microphone cannot be opened;
   * the old one stays in use.
   */
  async setDevices({ input, output }: DeviceChoice): Promise<void> {
    if (output !== undefined) await this.#sound.setOutput(output);
    if (input !== undefined) await this.#microphone.choose(input);
  }

  /** Lists the devices to choose from. A `devices` event reports changes. */
  async devices(): Promise<Devices> {
    return listDevices();
  }

  /**
   * Enables sound, for which browsers require a click or a key press. Methods that must be called from one do this
   * themselves.
   */
  unlockSound(): void {
    // The `sound` event reports why it failed.
    this.#sound.open().catch(() => undefined);
  }

  #hello(): HelloMessage {
    const { audio = "binary", client = CLIENT, initialMessages, showsRecording = false } = this.#options;
    const isStored = this.#sessionConversation !== null && this.conversationId === this.#sessionConversation;
    return {
      type: "hello",
      mode: this.mode,
      audio,
      client,
      features: showsRecording ? ["hold", "recording"] : ["hold"],
      ...(this.#token === undefined ? {} : { token: this.#token }),
      // If the session cannot be resumed, the conversation continues, and it already has the initial messages.
      ...(this.conversationId === null ? {} : { conversation_id: this.conversationId }),
      ...(initialMessages === undefined || isStored ? {} : { initial_messages: initialMessages }),
    };
  }

  #connectionChanged(now: Connection): void {
    if (now.state === "open" && now.session !== "resumed") {
      this.#playback.reset();
      // The call continues in the new session.
      if (this.#listening.isOn) this.#session.send({ type: "start_listening" });
    }
    if (now.state === "closed") this.#listening.end();
    this.#update("connection", now);
  }

  #receive(incoming: Incoming): void {
    if (incoming.type === "speech") {
      this.#playback.receive(incoming.seq, { turn: incoming.turn, hz: SPEECH_HZ, samples: incoming.pcm });
      return;
    }
    this.#apply(incoming);
    this.#events.emit("message", incoming);
    this.#events.emit(incoming.type, incoming as never);
  }

  #apply(message: ServerMessage): void {
    switch (message.type) {
      case "state":
        this.state = message.state;
        if (message.state === "processing") this.#hasTurn = true;
        // The server listens and speaks in calls only.
        if (message.state === "listening" || message.state === "speaking") this.mode = "voice";
        this.#playback.followState(message.state);
        // After an interruption the server listens. If push-to-talk was released by then, no speech can come.
        if (message.state === "listening" && this.#listening.isOff) this.#session.send({ type: "stop_listening" });
        break;
      case "session":
        this.mode = message.mode;
        if (message.conversation_id !== this.#sessionConversation) this.#hasTurn = false;
        this.#sessionConversation = message.conversation_id;
        break;
      case "transcript":
        if (message.is_final) this.#markStored();
        break;
      case "response":
        // A spoken turn may never get a transcript. A greeting alone is not stored.
        if (this.#hasTurn) this.#markStored();
        break;
      case "history":
        if (message.conversation_id !== this.#sessionConversation) this.#isUnstored = false;
        this.#sessionConversation = message.conversation_id;
        if (!this.#isUnstored) this.conversationId = message.conversation_id;
        break;
      case "error":
        if (message.code === "unknown_conversation") this.conversationId = null;
        break;
      case "audio": {
        const wave = parseWav(fromBase64(message.data) ?? new Uint8Array());
        if (wave !== null) this.#playback.receive(message.seq, { turn: message.turn, ...wave });
        if (message.last) this.#playback.complete(message.turn);
        break;
      }
      case "hold":
        this.#playback.hold();
        break;
      case "resume":
        this.#playback.resume();
        break;
      case "generation_complete":
        this.#playback.complete(message.turn);
        break;
      case "end_voice_session":
        this.mode = "text";
        this.#listening.end();
        break;
      case "notice":
        if (endsCall(message)) this.#listening.end();
        break;
    }
  }

  #markStored(): void {
    this.#isUnstored = false;
    this.conversationId = this.#sessionConversation;
  }

  get #isBusy(): boolean {
    return this.state === "processing" || this.state === "speaking";
  }

  #stopPlayback(): { turn: number; playedMs: number } | null {
    return this.#isBusy ? this.#playback.interrupt() : this.#playback.stop();
  }

  #frameCaptured({ pcm, rms }: CapturedFrame): void {
    const playing = this.playing.playing && !this.playing.held;
    const frameMs = (pcm.length * 1000) / MICROPHONE_HZ;
    const isLoud = this.#gate.process(rms, frameMs, playing);
    this.#setLevel({ input: rms, speech: this.#gate.speech });
    if (!this.#listening.isOn || this.#isMuted) return;
    this.#session.sendAudio(encodeMicrophone(pcm, playing));
    if (this.#options.bargeIn === false) return;
    const verdict = this.#bargeIn.process(isLoud, frameMs, playing);
    if (verdict !== null) this.#playback.duck(verdict === "duck");
  }

  #suspendIfQuiet(): void {
    const isAwake = this.microphone.state === "on" || this.microphone.state === "asking" || this.playing.playing;
    if (!isAwake) this.#sound.suspend();
  }

  #setLevel(changed: Partial<Level>): void {
    this.#update("level", { ...this.level, ...changed });
  }

  #update<Type extends "connection" | "stalled" | "microphone" | "sound" | "level" | "playing">(
    type: Type,
    now: AntiphonEvents[Type],
  ): void {
    Object.assign(this, { [type]: now });
    this.#events.emit(type, now);
  }
}

/** The server that served this module. */
function socketUrl(): string {
  const url = new URL(SOCKET_PATH, MODULE_URL);
  url.protocol = url.protocol.replace("http", "ws");
  return url.href;
}
