/** The page's state behind signals, and what a person can do with it. The one place where the client and the view meet. */

import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { Antiphon, AntiphonOptions, InitialMessage, Level, ServerMessage, SettingsMessage } from "../client/antiphon";
import { VOICE_UNAVAILABLE } from "../client/events";
import { MAX_TEXT } from "../client/wire";
import type { CallRecord, Records } from "./records";
import { reduce, type ViewEvent } from "./reduce";
import * as storage from "./settings";
import { DEFAULTS, type Settings } from "./settings";
import { initialState, type PageState } from "./state";

/** More of a call does not fit into the first message. */
const MAX_TURNS = 4;

export interface Environment {
  createClient(options: AntiphonOptions): Antiphon;
  now(): number;
  /** Over visits, and over reloads of this tab. */
  local: Storage | null;
  tab: Storage | null;
  makeRecords(token: () => string | null): Records;
}

export interface Page {
  readonly state: ReadonlySignal<PageState>;
  readonly settings: ReadonlySignal<Settings>;
  readonly records: Records;
  /** A part of the state. Whoever shows it is drawn again only if that part changes. */
  select<T>(part: (state: PageState) => T): ReadonlySignal<T>;
  dispatch(event: ViewEvent): void;
  now(): number;
  /** Many times a second: it goes round the state. */
  onLevel(listener: (level: Level) => void): () => void;
  client(): Antiphon;
  connect(token?: string): void;
  toggleTalk(): void;
  /** Push-to-talk. In a hands-free call it silences the assistant and lifts a mute. */
  press(): void;
  release(): void;
  toggleMute(): void;
  interrupt(): void;
  say(text: string): void;
  /** Asks what failed, or was not taken, again: the key of its item. */
  retry(key: string): void;
  /** What waits for the end of the answer, back into the field: an id from the queue. */
  unqueue(id: string): void;
  confirm(token: string, approved: boolean): void;
  change(changed: Partial<Settings>): void;
  load(conversationId: string): void;
  clear(): void;
  startNew(): void;
  continueFrom(call: CallRecord): void;
}

export function createPage(environment: Environment): Page {
  const { createClient, now, local, tab } = environment;
  const state: Signal<PageState> = signal(initialState());
  const settings: Signal<Settings> = signal(storage.loadSettings(local));
  const listeners = new Set<(level: Level) => void>();
  const saved = storage.loadTab(tab);
  let token = saved.token;
  const records = environment.makeRecords(() => token);
  let wasMuted = false;
  let unsubscribe: (() => void)[] = [];
  let client = attach({ ...(saved.conversationId === null ? {} : { conversationId: saved.conversationId }) });

  function dispatch(event: ViewEvent): void {
    state.value = reduce(state.value, event, now());
  }

  function attach(options: AntiphonOptions): Antiphon {
    const created = createClient({ ...options, ...(token === null ? {} : { token }) });
    unsubscribe = [
      created.on("connection", (connection) => {
        dispatch({ type: "connection", connection, hasToken: token !== null });
        if (connection.state === "open" && connection.session !== "resumed") {
          sendSettings(created, settings.value);
          checkVoice();
        }
        saveConversation(created);
      }),
      created.on("microphone", (microphone) => dispatch({ type: "microphone", microphone })),
      created.on("sound", (sound) => dispatch({ type: "sound", sound })),
      created.on("playing", (playing) => dispatch({ type: "playing", playing })),
      created.on("level", (level) => listeners.forEach((listener) => listener(level))),
      created.on("message", (message) => receive(created, message)),
    ];
    created.setVolume(settings.value.volume / 100);
    const { input, output } = settings.value;
    // A device that was remembered may be gone; the default is used then.
    if (input !== "" || output !== "") created.setDevices({ input, output }).catch(() => undefined);
    return created;
  }

  function receive(from: Antiphon, message: ServerMessage): void {
    dispatch(message);
    saveConversation(from);
    if (message.type === "voice_session_start") talk(message.pending_request);
    // It may be missing for a moment only.
    if (message.type === "notice" && message.code === VOICE_UNAVAILABLE) checkVoice();
    if (message.type === "error" && message.code === "bad_settings" && settings.value.voice !== "") {
      // A voice that was remembered may be gone.
      settings.value = { ...settings.value, voice: "" };
      storage.saveSettings(local, settings.value);
    }
  }

  function checkVoice(): void {
    records.models().then(
      (models) => dispatch({ type: "voice_checked", hasVoice: models.some(({ mode }) => mode === "voice") }),
      // Who cannot be asked is not said to have none.
      () => undefined,
    );
  }

  function saveConversation(from: Antiphon): void {
    storage.saveConversation(tab, from.conversationId);
  }

  function start(options: AntiphonOptions): void {
    unsubscribe.forEach((end) => end());
    client.close();
    dispatch({ type: "talk", talk: "off" });
    dispatch({ type: "microphone", microphone: { state: "off" } });
    dispatch({ type: "cleared" });
    client = attach(options);
    saveConversation(client);
    client.connect();
  }

  function talk(pendingRequest?: string | null): void {
    dispatch({ type: "talk", talk: "hands_free" });
    // Why it failed is told by the microphone's own state.
    client.startVoice(pendingRequest).catch(() => dispatch({ type: "talk", talk: "off" }));
  }

  function markUnqueuing(ids: readonly string[]): void {
    dispatch({ type: "unqueue_requested", ids });
  }

  return {
    state,
    settings,
    records,
    select: (part) => computed(() => part(state.value)),
    dispatch,
    now,
    onLevel(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    client: () => client,
    connect(given) {
      token = given ?? token;
      if (given !== undefined) storage.saveToken(tab, given);
      // A session belongs to whoever began it: another token begins another one.
      if (given !== undefined && state.value.connection.state === "open") client.close();
      client.connect(given);
    },
    toggleTalk() {
      if (state.value.talk === "hands_free") {
        dispatch({ type: "talk", talk: "off" });
        client.endVoice();
      } else {
        talk();
      }
    },
    press() {
      const { microphone, talk: mode, hasVoice } = state.value;
      if (mode === "held" || hasVoice === false) return;
      if (mode === "hands_free") {
        wasMuted = microphone.state === "on" && microphone.muted;
        if (wasMuted) client.mute(false);
        client.interrupt();
        return;
      }
      dispatch({ type: "talk", talk: "held" });
      client.startListening().catch(() => dispatch({ type: "talk", talk: "off" }));
    },
    release() {
      if (wasMuted) client.mute(true);
      wasMuted = false;
      if (state.value.talk !== "held") return;
      dispatch({ type: "talk", talk: "off" });
      client.stopListening();
    },
    toggleMute() {
      const { microphone } = state.value;
      if (microphone.state === "on") client.mute(!microphone.muted);
    },
    interrupt() {
      // It empties the queue. What is being typed has the field; the queue then stays in the thread.
      if (state.value.draft.trim() === "") markUnqueuing(state.value.queue.map(({ id }) => id));
      client.interrupt();
    },
    say(text) {
      const trimmed = text.trim();
      if (trimmed === "") return;
      dispatch({ type: "message_typed", text: trimmed });
      client.say(trimmed);
    },
    retry(key) {
      const item = state.value.items.find((each) => each.key === key);
      if (item?.kind !== "user") return;
      dispatch({ type: "message_retried", key });
      client.say(item.text);
    },
    unqueue(id) {
      markUnqueuing([id]);
      client.unqueue(id);
    },
    confirm(confirmationToken, approved) {
      dispatch({ type: "confirmation_answered", token: confirmationToken, approved });
      client.confirm(confirmationToken, approved);
    },
    change(changed) {
      settings.value = { ...settings.value, ...changed };
      storage.saveSettings(local, settings.value);
      if (changed.volume !== undefined) client.setVolume(changed.volume / 100);
      const { input, output } = changed;
      if (input !== undefined || output !== undefined) {
        const choice = { ...(input === undefined ? {} : { input }), ...(output === undefined ? {} : { output }) };
        client.setDevices(choice).catch((error: Error) => dispatch({ type: "error_raised", text: error.message }));
      }
      const message = toWire(changed);
      if (Object.keys(message).length > 0) client.settings(message);
    },
    load(id) {
      if (state.value.talk !== "off") {
        dispatch({ type: "talk", talk: "off" });
        client.endVoice();
      }
      client.loadConversation(id);
    },
    clear() {
      client.clearConversation();
      dispatch({ type: "cleared" });
      dispatch({ type: "notice_added", kind: "success", text: "Conversation cleared.", code: null });
    },
    startNew: () => start({}),
    continueFrom(call) {
      const initialMessages = toContext(call);
      start(initialMessages.length > 0 ? { initialMessages } : {});
      dispatch({ type: "event_added", text: `Continued from a call. ${call.summary}`.trim() });
    },
  };
}

/** Its summary; without one, its last turns. */
function toContext({ summary, transcript }: CallRecord): InitialMessage[] {
  const turns: InitialMessage[] = transcript.map(({ role, content }) => ({ role, content }));
  const known = summary.trim() === "" ? turns : [{ role: "assistant" as const, content: `Summary of our earlier call: ${summary.trim()}` }];
  const said = known.filter(({ content }) => content !== "").slice(-MAX_TURNS);
  return said.map(({ role, content }) => ({ role, content: content.slice(0, MAX_TEXT) }));
}

function toWire(changed: Partial<Settings>): Omit<SettingsMessage, "type"> {
  const { theme, speed, volume, voice, captions, greeting } = changed;
  return {
    ...(theme === undefined ? {} : { theme }),
    ...(speed === undefined ? {} : { voice_speed: speed }),
    ...(volume === undefined ? {} : { volume }),
    ...(voice === undefined || voice === "" ? {} : { voice }),
    ...(captions === undefined ? {} : { captions }),
    ...(greeting === undefined ? {} : { greeting }),
  };
}

/** Only what was chosen: the rest is the server's to decide. */
function sendSettings(client: Antiphon, settings: Settings): void {
  const keys = Object.keys(DEFAULTS) as (keyof Settings)[];
  const chosen = Object.fromEntries(keys.filter((key) => settings[key] !== DEFAULTS[key]).map((key) => [key, settings[key]]));
  const { voice, ...rest } = toWire(chosen as Partial<Settings>);
  if (Object.keys(rest).length > 0) client.settings(rest);
  // By itself, since a voice may be gone, and then nothing of its message is applied.
  if (voice !== undefined) client.settings({ voice });
}
