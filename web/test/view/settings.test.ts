import { describe, expect, test } from "vitest";
import { DEFAULTS, loadSettings, loadTab, saveConversation, saveReminders, saveSettings } from "../../src/view/settings";

function memory(kept: Record<string, string> = {}): Storage {
  const map = new Map(Object.entries(kept));
  return {
    get length() {
      return map.size;
    },
    clear: () => map.clear(),
    key: () => null,
    getItem: (key) => map.get(key) ?? null,
    setItem: (key, value) => void map.set(key, value),
    removeItem: (key) => void map.delete(key),
  };
}

const forbidden = new Proxy({} as Storage, {
  get: () => () => {
    throw new DOMException("no", "SecurityError");
  },
});

describe("settings", () => {
  test("are remembered", () => {
    const store = memory();
    saveSettings(store, { ...DEFAULTS, theme: "rose", speed: 150 });
    expect(loadSettings(store)).toEqual({ ...DEFAULTS, theme: "rose", speed: 150 });
  });

  test.each([
    "not json",
    "null",
    "[]",
    '{"theme":"__proto__","speed":9000,"volume":"loud","captions":1,"talkKey":""}',
    '{"speed":49,"volume":-1,"input":{}}',
  ])("that are invalid fall back to the defaults: %s", (kept) => {
    expect(loadSettings(memory({ "antiphon.settings": kept }))).toEqual(DEFAULTS);
  });

  test("also work without storage", () => {
    expect(() => saveSettings(forbidden, { ...DEFAULTS })).not.toThrow();
    expect(loadSettings(forbidden)).toEqual(DEFAULTS);
    expect(loadTab(null)).toEqual({ conversationId: null, beginning: [], token: null, reminders: [] });
  });

  test("reminders are remembered until they are dismissed, and nothing else is taken for one", () => {
    const store = memory();
    const reminder = { key: "r@1", message: "Tea", due: 1, kind: "timer", missed: false } as const;
    saveReminders(store, [reminder]);
    expect(loadTab(store).reminders).toEqual([reminder]);
    saveReminders(store, []);
    expect(loadTab(store).reminders).toEqual([]);
    expect(loadTab(memory({ "antiphon.reminders": '[{"key":"r@1","message":{},"due":"x"}]' })).reminders).toEqual([]);
  });

  test("a conversation is remembered until there is none", () => {
    const store = memory();
    saveConversation(store, "c1");
    expect(loadTab(store).conversationId).toBe("c1");
    saveConversation(store, null);
    expect(loadTab(store).conversationId).toBeNull();
  });
});
