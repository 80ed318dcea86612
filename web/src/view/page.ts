/** The page's state as signals, and the user's actions. The only place where the client and the view meet. */

import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { Antiphon, AntiphonOptions, InitialMessage, Level, ServerMessage, SettingsMessage } from "../client/antiphon";
import { VOICE_UNAVAILABLE } from "../client/events";
import { MAX_TEXT } from "../client/wire";
import { type CallRecord, type Records, summaryOf } from "./records";
import { isAboutModel } from "./episode";
import { reduce, type ViewEvent } from "./reduce";
import * as storage from "./settings";
import { DEFAULTS, type Settings } from "./settings";
import { initialState, type PageState } from "./state";

/** How many turns of a call fit into the first message. */
const MAX_TURNS = 4;

export interface Environment {
  createClient(options: AntiphonOptions): Antiphon;
  now(): number;
  /** Storage that lasts across visits, and storage that lasts as long as this tab. */
  local: Storage | null;
  tab: Storage | null;
  makeRecords(token: () => string | null): Records;
}

export interface Page {
  readonly state: ReadonlySignal<PageState>;
  readonly settings: ReadonlySignal<Settings>;
  readonly records: Records;
  /** Selects a part of the state. Components that read it render again only if that part changes. */
  select<T>(part: (state: PageState) => T): ReadonlySignal<T>;
  dispatch(event: ViewEvent): void;
  now(): number;
  /** Levels arrive many times a second, so they bypass the state. */
  onLevel(listener: (level: Level) => void): () => void;
  client(): Antiphon;
  connect(token?: string): void;
  toggleTalk(): void;
  /** Push-to-talk. In a hands-free call it interrupts the assistant and unmutes while held. */
  press(): void;
  release(): void;
  toggleMute(): void;
  /** Begins or stops recording the calls of this conversation. */
  toggleRecording(): void;
  interrupt(): void;
  say(text: string): void;
  /** Sends a failed or rejected message again, by the key of its item. */
  retry(key: string): void;
  /** Moves a queued message back into the message box, by its id. */
  unqueue(id: string): void;
  confirm(token: string, approved: boolean): void;
  change(changed: Partial<Settings>): void;
  load(conversationId: string): void;
  clear(): void;
  startNew(): void;
  continueFrom(call: CallRecord): void;
  /** Asks the server which models are in use. */
  checkEnergy(): void;
  /** Replaces the connection to the model and keeps the conversation. Rejects with a sentence to show. */
  renewModel(): Promise<void>;
}

export function createPage(environment: Environment): Page {
  const { createClient, now, local, tab } = environment;
  const settings: Signal<Settings> = signal(storage.loadSettings(local));
  const listeners = new Set<(level: Level) => void>();
  const saved = storage.loadTab(tab);
  // A reload must not silence an alarm.
  const { reminders } = saved;
  const state: Signal<PageState> = signal({ ...initialState(), reminders, seenReminders: reminders.map(({ key }) => key) });
  let token = saved.token;
  const records = environment.makeRecords(() => token);
  let wasMuted = false;
  let unsubscribe: (() => void)[] = [];
  let client = attach(toOptions(saved));

  function dispatch(event: ViewEvent): void {
    const before = state.value.reminders;
    state.value = reduce(state.value, event, now());
    if (state.value.reminders !== before) storage.saveReminders(tab, state.value.reminders);
  }

  function attach(options: AntiphonOptions): Antiphon {
    const created = createClient({ ...options, ...(token === null ? {} : { token }) });
    unsubscribe = [
      created.on("connection", (connection) => {
        dispatch({ type: "connection", connection, hasToken: token !== null });
        // After a reconnection this may be another server.
        if (connection.state === "open") checkEnergy();
        if (connection.state === "open" && connection.session !== "resumed") {
          sendSettings(created, settings.value);
          checkVoice();
        }
        saveConversation(created);
      }),
      created.on("stalled", (isStalled) => dispatch({ type: "stalled", isStalled })),
      created.on("microphone", (microphone) => dispatch({ type: "microphone", microphone })),
      created.on("sound", (sound) => dispatch({ type: "sound", sound })),
      created.on("playing", (playing) => dispatch({ type: "playing", playing })),
      created.on("level", (level) => listeners.forEach((listener) => listener(level))),
      created.on("message", (message) => receive(created, message)),
    ];
    created.setVolume(settings.value.volume / 100);
    const { input, output } = settings.value;
    // A remembered device may be gone; the default is used then.
    if (input !== "" || output !== "") created.setDevices({ input, output }).catch(() => undefined);
    return created;
  }

  function receive(from: Antiphon, message: ServerMessage): void {
    dispatch(message);
    saveConversation(from);
    if (message.type === "voice_session_start") talk(message.pending_request);
    // They may have been changed by voice.
    if (message.type === "settings_updated") adopt(from, { speed: message.voice_speed, volume: message.volume });
    // The voice may be unavailable for a moment only.
    if (message.type === "notice" && message.code === VOICE_UNAVAILABLE) checkVoice();
    // Another model may answer now at the same level.
    if (message.type === "notice" && isAboutModel(message)) checkEnergy();
    if (message.type === "error" && message.code === "bad_settings" && settings.value.voice !== "") {
      // A remembered voice may be gone.
      settings.value = { ...settings.value, voice: "" };
      storage.saveSettings(local, settings.value);
    }
  }

  function adopt(from: Antiphon, changed: Pick<Settings, "speed" | "volume">): void {
    if (changed.speed === settings.value.speed && changed.volume === settings.value.volume) return;
    settings.value = { ...settings.value, ...changed };
    storage.saveSettings(local, settings.value);
    from.setVolume(changed.volume / 100);
  }

  function checkVoice(): void {
    records.models().then(
      (models) => dispatch({ type: "voice_checked", hasVoice: models.some(({ mode }) => mode === "voice") }),
      // If the server cannot be asked, nothing is known about its voice.
      () => undefined,
    );
  }

  function checkEnergy(): void {
    const before = state.value.energy;
    records.energy().then(
      (report) => {
        // A message that came meanwhile may be newer than the report.
        if (state.value.energy === before) dispatch({ type: "energy_reported", report });
        else checkEnergy();
      },
      () => undefined,
    );
  }

  function saveConversation(from: Antiphon): void {
    storage.saveConversation(tab, from.conversationId);
    // From now on the server has what the conversation started with.
    if (from.conversationId !== null) storage.saveBeginning(tab, []);
  }

  function start(options: AntiphonOptions): void {
    unsubscribe.forEach((end) => end());
    client.close();
    dispatch({ type: "talk", talk: "off" });
    dispatch({ type: "stalled", isStalled: false });
    dispatch({ type: "microphone", microphone: { state: "off" } });
    dispatch({ type: "cleared" });
    storage.saveBeginning(tab, options.initialMessages ?? []);
    client = attach(options);
    saveConversation(client);
    client.connect();
  }

  function talk(pendingRequest?: string | null): void {
    dispatch({ type: "talk", talk: "hands_free" });
    // The microphone's state says why it failed.
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
      // A session belongs to the token that started it, so another token starts a new session.
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
    toggleRecording() {
      client.record(state.value.recording?.choice !== "on");
    },
    interrupt() {
      // An interruption empties the queue. If the message box is in use, the queued messages stay in the thread.
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
      dispatch({ type: "event_added", text: "Continued from an earlier call." });
    },
    checkEnergy,
    async renewModel() {
      const { sessionId } = state.value;
      if (sessionId === null) throw new Error("There is no session yet. Try again once the page is connected.");
      await records.renewModel(sessionId);
    },
  };
}

/** Continues the tab's conversation, or starts it again with the same beginning if the server does not have it yet. */
function toOptions({ conversationId, beginning }: storage.Tab): AntiphonOptions {
  if (conversationId !== null) return { conversationId };
  return beginning.length > 0 ? { initialMessages: beginning } : {};
}

/** The call's summary or, if it has none, its last turns. */
function toContext(call: CallRecord): InitialMessage[] {
  const turns: InitialMessage[] = call.transcript.map(({ role, content }) => ({ role, content }));
  const summary = summaryOf(call);
  const known = summary === null ? turns : [{ role: "assistant" as const, content: `Summary of our earlier call: ${summary}` }];
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

/** Sends only what the user has changed; the server decides the rest. */
function sendSettings(client: Antiphon, settings: Settings): void {
  const keys = Object.keys(DEFAULTS) as (keyof Settings)[];
  const chosen = Object.fromEntries(keys.filter((key) => settings[key] !== DEFAULTS[key]).map((key) => [key, settings[key]]));
  const { voice, ...rest } = toWire(chosen as Partial<Settings>);
  if (Object.keys(rest).length > 0) client.settings(rest);
  // The voice is sent separately: if it is gone, the server rejects the whole message.
  if (voice !== undefined) client.settings({ voice });
}
