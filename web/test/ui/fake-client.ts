/** A fake client: it records calls, and emits the messages and events that the test gives it. */

import type { Antiphon, AntiphonEvents, AntiphonOptions, ServerMessage } from "../../src/client/antiphon";
import { createEmitter } from "../../src/client/events";
import { createPage, type Page } from "../../src/view/page";
import type { Knowledge } from "../../src/view/knowledge";
import type { CallRecord, ModelEntry, Records } from "../../src/view/records";
import type { TestMessage } from "../view/messages";

export interface FakeClient {
  readonly options: AntiphonOptions;
  /** Recorded calls, such as "say hello" and "confirm k false". */
  readonly calls: string[];
  conversationId: string | null;
  emit<Type extends keyof AntiphonEvents>(type: Type, event: AntiphonEvents[Type]): void;
  receive(...messages: TestMessage[]): void;
}

const PROMISED = new Set(["startListening", "startVoice", "setDevices"]);

export interface TestPage {
  page: Page;
  clients: FakeClient[];
  /** The client in use. */
  client(): FakeClient;
  /** How the client's promises settle. */
  outcome: { error: Error | null };
  records: Records & { deleted: string[]; renewed: string[] };
}

export function memoryStorage(): Storage {
  const map = new Map<string, string>();
  return {
    length: 0,
    clear: () => map.clear(),
    key: () => null,
    getItem: (key) => map.get(key) ?? null,
    setItem: (key, value) => void map.set(key, value),
    removeItem: (key) => void map.delete(key),
  };
}

export function createTestPage(options: { local?: Storage; tab?: Storage; now?: () => number; calls?: CallRecord[]; models?: ModelEntry[]; knowledge?: Knowledge } = {}): TestPage {
  const clients: FakeClient[] = [];
  const outcome: TestPage["outcome"] = { error: null };
  const deleted: string[] = [];
  const renewed: string[] = [];
  const records: TestPage["records"] = {
    deleted,
    renewed,
    conversations: async () => ({
      conversations: [{ id: "c9", title: "Earlier <b>talk</b>", created_ms: 1, updated_ms: 2 }],
      next: null,
    }),
    deleteConversation: async (id) => void deleted.push(id),
    calls: async () => options.calls ?? [],
    clearCalls: async () => void deleted.push("calls"),
    recording: async (_, id) => `blob:${id}`,
    models: async () => options.models ?? [{ name: "cascade", mode: "voice" }],
    energy: async () => ({
      ladders: [{ mode: "voice", max: 3, best: 3, rungs: [{ level: 3, model: "best", cooling_s: 0 }] }],
      sessions: [],
    }),
    renewModel: async (id) => {
      if (outcome.error !== null) throw outcome.error;
      renewed.push(id);
    },
    knowledge: options.knowledge ?? {
      search: async () => ({ results: [], total: 0 }),
      read: async () => Promise.reject(new Error("There is no such record.")),
      add: async () => Promise.reject(new Error("It was refused.")),
      remove: async (id) => void deleted.push(id),
    },
    voices: async () => [{ id: "joe", name: "Joe", language: "en-US", current: true }],
  };
  const page = createPage({
    createClient: (given) => {
      const made = makeClient(given, outcome);
      clients.push(made.fake);
      return made.client;
    },
    now: options.now ?? (() => 1000),
    local: options.local ?? memoryStorage(),
    tab: options.tab ?? memoryStorage(),
    makeRecords: () => records,
  });
  return { page, clients, client: () => clients.at(-1)!, outcome, records };
}

function makeClient(options: AntiphonOptions, outcome: TestPage["outcome"]): { client: Antiphon; fake: FakeClient } {
  const events = createEmitter<AntiphonEvents>();
  const fake: FakeClient = {
    options,
    calls: [],
    conversationId: options.conversationId ?? null,
    emit: events.emit,
    receive(...messages) {
      for (const message of messages) events.emit("message", message as unknown as ServerMessage);
    },
  };
  const client = new Proxy(fake, {
    get(target, name: string) {
      if (name === "on") return events.on;
      if (name === "conversationId") return target.conversationId;
      return (...given: unknown[]) => {
        const said = given.filter((each) => each !== undefined && each !== null);
        target.calls.push([name, ...said.map((each) => (typeof each === "string" ? each : JSON.stringify(each)))].join(" "));
        if (name === "devices") return Promise.resolve({ inputs: [{ id: "m1", label: "Desk" }], outputs: [] });
        if (!PROMISED.has(name)) return undefined;
        return outcome.error === null ? Promise.resolve() : Promise.reject(outcome.error);
      };
    },
  });
  return { client: client as unknown as Antiphon, fake };
}
