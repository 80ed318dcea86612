/** The client of an Antiphon server: `new Antiphon({ … }).connect()`, methods to speak, typed events to listen. */

import { createBargeIn, createVoiceGate } from "./barge-in";
import type { CapturedFrame } from "./capture";
import type { AntiphonEvents, Connection, Devices, Level, MicrophoneState, Playing, SoundState } from "./events";
import { createEmitter, VOICE_UNAVAILABLE } from "./events";
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
  /** The server's socket, such as "wss://example.org/ws". Absent: that of the server that this module comes from. */
  url?: string;
  /** Where the server asks for one. It travels in the first message, never in the address. */
  token?: string;
  /** How to begin. Absent: text. */
  mode?: Mode;
  /** An earlier conversation to go on in. */
  conversationId?: string;
  /** What was said elsewhere before, oldest first: context of a new conversation. */
  initialMessages?: InitialMessage[];
  /** Name and version of the program, for the server's log. */
  client?: string;
  /** "json" asks for speech as WAV files in messages. Absent: binary frames, which are a quarter smaller. */
  audio?: AudioForm;
  /** Whether speech over the assistant turns it down, then stops it, before the server has noticed. Absent: yes. */
  bargeIn?: boolean;
}

export interface DeviceChoice {
  /** An id from `devices()`, or "" for the system's default. */
  input?: string;
  output?: string;
}

export class Antiphon {
  // How it is now. Each has an event of the same name, with the same value.
  connection: Connection = { state: "closed", code: 1000, reason: "Not connected yet." };
  microphone: MicrophoneState = { state: "off" };
  sound: SoundState = { state: "off" };
  level: Level = { input: 0, output: 0, speech: false };
  playing: Playing = { playing: false, turn: 0, playedMs: 0, receivedMs: 0, complete: false, ducked: false };

  /** The server's state. */
  state: State = "idle";
  mode: Mode;
  /** To go on in after a reload; null as long as nothing was said. (The handle of the session is kept in memory only.) */
  conversationId: string | null;

  readonly #options: AntiphonOptions;
  readonly #events = createEmitter<AntiphonEvents>();
  readonly #session: Session;
  #token: string | undefined;
  /** Of this session, also if nothing was said in it. */
  #sessionConversation: string | null = null;

  readonly #sound = createSound((now) => this.#update("sound", now));
  readonly #player = createPlayer(this.#sound, {
    position: (at, level) => {
      this.#playback.position(at);
      // A report of what was stopped may still have been on its way: nothing would lower this level again.
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
    this.#session = createSession(options.url ?? socketUrl(), () => this.#hello(), {
      received: (incoming) => this.#receive(incoming),
      connection: (now) => this.#connectionChanged(now),
    });
    if (typeof window === "undefined") return;
    navigator.mediaDevices?.addEventListener("devicechange", () => {
      this.devices().then((found) => this.#events.emit("devices", found), () => undefined);
    });
    // A page that is only put aside may come back, and then its session goes on.
    addEventListener("pagehide", (event) => {
      if (!event.persisted) this.close();
    });
  }

  /** Calls the handler at every event of this type: the `type` of a server's message, or one of `ClientEvents`. Gives a function that ends it. */
  on<Type extends keyof AntiphonEvents>(type: Type, handler: (told: AntiphonEvents[Type]) => void): () => void {
    return this.#events.on(type, handler);
  }

  /** Opens the connection, and again whenever it is lost. While it waits for the next try, tries now. */
  connect(token?: string): void {
    this.#token = token ?? this.#token;
    this.#session.connect();
  }

  /** Ends the session, the microphone and the sound. `connect()` begins a new session on the same conversation. */
  close(): void {
    this.#session.close();
    this.#listening.end();
    this.#playback.reset();
    this.#player.detach();
    this.#sound.close();
  }

  /** Opens the microphone and listens, as long as push-to-talk is pressed. Silences the assistant. Call it from a click or a key. Rejects with a `MicrophoneError`. */
  async startListening(): Promise<void> {
    this.interrupt();
    await this.#listening.start({ type: "start_listening" });
  }

  /** What was said so far is the user's turn. The microphone is closed ten seconds later. */
  stopListening(): void {
    this.#listening.stop();
  }

  /** From text to voice, hands-free. Call it from a click or a key, or at `voice_session_start` with its request. Rejects with a `MicrophoneError`. */
  async startVoice(pendingRequest?: string | null): Promise<void> {
    await this.#listening.start({ type: "start_voice", pending_request: pendingRequest || null });
  }

  /** From voice to text. Closes the microphone. */
  endVoice(): void {
    this.#listening.end();
    this.#stopPlayback();
    this.#session.send({ type: "end_voice" });
  }

  /** Says it in writing, in either mode. Silences the assistant. Waits for the connection if there is none, and for the end of an answer that is being made (`queued`). */
  say(text: string): void {
    const trimmed = text.trim();
    if (trimmed === "") return;
    const heard = this.#playback.stop();
    if (heard !== null) this.#session.send({ type: "playback", turn: heard.turn, played_ms: heard.playedMs });
    this.#session.send({ type: "text_message", text: trimmed });
  }

  /** Takes back what waits for the end of an answer: an id from `queued`, which also answers this. */
  unqueue(id: string): void {
    this.#session.send({ type: "unqueue", id });
  }

  /** Silence within 50 ms, before the server agrees: the stop button, Escape. Nothing happens if nothing is being made or said. */
  interrupt(): void {
    const heard = this.#stopPlayback();
    if (!this.#isBusy) return;
    this.#session.send({ type: "interrupt", ...(heard === null ? {} : { played_ms: heard.playedMs }) });
  }

  /** The person's answer to a `confirmation_request`. */
  confirm(confirmationToken: string, approved: boolean): void {
    this.#session.send({ type: "confirm", confirmation_token: confirmationToken, approved });
  }

  /** Answered by `settings_updated`, or by an `error` with the code `bad_settings`. */
  settings(changed: Omit<SettingsMessage, "type">): void {
    this.#session.send({ type: "settings", ...changed });
  }

  /** Answered by `history`. */
  loadConversation(id: string): void {
    this.#playback.stop();
    this.#session.send({ type: "load_conversation", conversation_id: id });
  }

  clearConversation(): void {
    this.#session.send({ type: "clear_conversation" });
  }

  /** One short sentence, to hear a voice and the volume. Call it from a click or a key. */
  testAudio(voice?: string): void {
    this.unlockSound();
    this.#session.send({ type: "test_audio", voice: voice ?? null });
  }

  /** A muted microphone stays open, and nothing of it is sent. The assistant goes on speaking: mute is no pause. */
  mute(muted: boolean): void {
    this.#isMuted = muted;
    this.#microphone.mute(muted);
  }

  /** From 0 to 1. */
  setVolume(volume: number): void {
    this.#player.setVolume(volume);
  }

  /** At once, in a call too. Rejects with a `MicrophoneError` if the new microphone cannot be opened; the old one then goes on. */
  async setDevices({ input, output }: DeviceChoice): Promise<void> {
    if (output !== undefined) await this.#sound.setOutput(output);
    if (input !== undefined) await this.#microphone.choose(input);
  }

  /** What there is to choose from. A `devices` event tells when it changes. */
  async devices(): Promise<Devices> {
    return listDevices();
  }

  /** Lets sound out. Browsers want a click or a key for that; what has to be called from one does it by itself. */
  unlockSound(): void {
    // Why it failed is told by the event.
    this.#sound.open().catch(() => undefined);
  }

  #hello(): HelloMessage {
    const { audio = "binary", client = CLIENT, initialMessages } = this.#options;
    const isStored = this.#sessionConversation !== null && this.conversationId === this.#sessionConversation;
    return {
      type: "hello",
      mode: this.mode,
      audio,
      client,
      ...(this.#token === undefined ? {} : { token: this.#token }),
      // If the session cannot be resumed, at least the conversation goes on, and it has what was brought along.
      ...(this.conversationId === null ? {} : { conversation_id: this.conversationId }),
      ...(initialMessages === undefined || isStored ? {} : { initial_messages: initialMessages }),
    };
  }

  #connectionChanged(now: Connection): void {
    if (now.state === "open" && now.session !== "resumed") {
      this.#playback.reset();
      // The call goes on, in another session.
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
        // Only a call is listened to, and only a call is spoken in.
        if (message.state === "listening" || message.state === "speaking") this.mode = "voice";
        this.#playback.followState(message.state);
        // After an interruption a server listens, and waits for speech that cannot come if the key is up by then.
        if (message.state === "listening" && this.#listening.isOff) this.#session.send({ type: "stop_listening" });
        break;
      case "session":
        this.mode = message.mode;
        this.#sessionConversation = message.conversation_id;
        break;
      case "transcript":
        if (message.is_final) this.conversationId = this.#sessionConversation;
        break;
      case "history":
        this.conversationId = this.#sessionConversation = message.conversation_id;
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
      case "generation_complete":
        this.#playback.complete(message.turn);
        break;
      case "end_voice_session":
        this.mode = "text";
        this.#listening.end();
        break;
      case "notice":
        if (message.code === VOICE_UNAVAILABLE) this.#listening.end();
        break;
    }
  }

  get #isBusy(): boolean {
    return this.state === "processing" || this.state === "speaking";
  }

  #stopPlayback(): { turn: number; playedMs: number } | null {
    return this.#isBusy ? this.#playback.interrupt() : this.#playback.stop();
  }

  #frameCaptured({ pcm, rms }: CapturedFrame): void {
    const { playing } = this.playing;
    const frameMs = (pcm.length * 1000) / MICROPHONE_HZ;
    const isLoud = this.#gate.process(rms, frameMs, playing);
    this.#setLevel({ input: rms, speech: this.#gate.speech });
    if (!this.#listening.isOn || this.#isMuted) return;
    this.#session.sendAudio(encodeMicrophone(pcm, playing));
    if (this.#options.bargeIn === false) return;
    const verdict = this.#bargeIn.process(isLoud, frameMs, playing);
    if (verdict === "interrupt") this.interrupt();
    else if (verdict !== null) this.#playback.duck(verdict === "duck");
  }

  #suspendIfQuiet(): void {
    const isAwake = this.microphone.state === "on" || this.microphone.state === "asking" || this.playing.playing;
    if (!isAwake) this.#sound.suspend();
  }

  #setLevel(changed: Partial<Level>): void {
    this.#update("level", { ...this.level, ...changed });
  }

  #update<Type extends "connection" | "microphone" | "sound" | "level" | "playing">(
    type: Type,
    now: AntiphonEvents[Type],
  ): void {
    Object.assign(this, { [type]: now });
    this.#events.emit(type, now);
  }
}

/** Where this module comes from, there is the server too. */
function socketUrl(): string {
  const url = new URL(SOCKET_PATH, MODULE_URL);
  url.protocol = url.protocol.replace("http", "ws");
  return url.href;
}
