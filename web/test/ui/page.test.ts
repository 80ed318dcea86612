import { describe, expect, test } from "vitest";
import { memoryStorage, createTestPage } from "./fake-client";
import { transcript } from "../view/messages";

const OPEN = { state: "open", session: "first", reason: null } as const;
const CALL = { id: "k", conversation_id: "c", started_ms: 1, duration_ms: 1, summary: "", models: [], transcript: [] };
const settled = () => new Promise((resolve) => setTimeout(resolve));

describe("talking", () => {
  test("the same button starts and ends a hands-free call", () => {
    const { page, client } = createTestPage();
    page.toggleTalk();
    expect(page.state.value.talk).toBe("hands_free");
    page.toggleTalk();
    expect(client().calls.slice(-2)).toEqual(["startVoice", "endVoice"]);
    expect(page.state.value.talk).toBe("off");
  });

  test("push-to-talk lasts while it is pressed", () => {
    const { page, client } = createTestPage();
    page.press();
    page.press();
    expect(page.state.value.talk).toBe("held");
    page.release();
    page.release();
    expect(client().calls.filter((asked) => asked.includes("Listening"))).toEqual(["startListening", "stopListening"]);
  });

  test("push-to-talk during a call interrupts the assistant and does not end the call", () => {
    const { page, client } = createTestPage();
    page.toggleTalk();
    client().emit("microphone", { state: "on", muted: true, label: "" });
    page.press();
    page.release();
    expect(client().calls.slice(-3)).toEqual(["mute false", "interrupt", "mute true"]);
    expect(page.state.value.talk).toBe("hands_free");
  });

  test("ends at once without a microphone", async () => {
    const { page, outcome } = createTestPage();
    outcome.error = new Error("denied");
    page.toggleTalk();
    await settled();
    expect(page.state.value.talk).toBe("off");
  });

  test("starts when the server switches to voice, with the pending request", () => {
    const { client } = createTestPage();
    client().receive({ type: "voice_session_start", session_id: "s", pending_request: "the weather" });
    expect(client().calls.at(-1)).toBe("startVoice the weather");
  });
});

describe("typing", () => {
  test("is trimmed, shown and sent", () => {
    const { page, client } = createTestPage();
    page.say("  hello ");
    expect(client().calls.at(-1)).toBe("say hello");
    expect(page.state.value.items).toMatchObject([{ kind: "user", text: "hello", status: "sending" }]);
  });

  test("nothing sends nothing", () => {
    const { page, client } = createTestPage();
    page.say(" \n ");
    expect(client().calls.filter((asked) => asked.startsWith("say"))).toEqual([]);
  });
});

describe("a queued message", () => {
  const queued = (...texts: string[]) => ({ type: "queued", messages: texts.map((text) => ({ id: `q${text}`, text })) }) as const;

  test("is removed by its id", () => {
    const { page, client } = createTestPage();
    client().receive(queued("One", "Two"));
    page.unqueue("qTwo");
    expect(client().calls.at(-1)).toBe("unqueue qTwo");
    client().receive(queued("One"));
    expect(page.state.value.draft).toBe("Two");
  });

  test("returns to the message box when the answer is stopped", () => {
    const { page, client } = createTestPage();
    client().receive(queued("One", "Two"));
    page.interrupt();
    client().receive(queued());
    expect(page.state.value.draft).toBe("One\nTwo");
  });
});

describe("a server without a voice", () => {
  test("is recognised by its models, and push-to-talk does nothing there", async () => {
    const { page, client } = createTestPage({ models: [{ name: "builtin", mode: "text" }] });
    client().emit("connection", OPEN);
    await settled();
    expect(page.state.value.hasVoice).toBe(false);
    page.press();
    expect(client().calls).not.toContain("startListening");
  });
});

describe("settings", () => {
  test("that were changed are sent to each new session, the voice separately", () => {
    const local = memoryStorage();
    local.setItem("antiphon.settings", JSON.stringify({ theme: "rose", voice: "joe" }));
    const { client } = createTestPage({ local });
    client().emit("connection", OPEN);
    expect(client().calls.slice(-2)).toEqual(['settings {"theme":"rose"}', 'settings {"voice":"joe"}']);
  });

  test("are not sent again to a resumed session", () => {
    const local = memoryStorage();
    local.setItem("antiphon.settings", JSON.stringify({ theme: "rose" }));
    const { client } = createTestPage({ local });
    client().emit("connection", { ...OPEN, session: "resumed" });
    expect(client().calls.filter((asked) => asked.startsWith("settings"))).toEqual([]);
  });

  test("that only concern the page are not sent", () => {
    const { page, client } = createTestPage();
    page.change({ timestamps: true });
    expect(client().calls.filter((asked) => asked.startsWith("settings"))).toEqual([]);
    expect(page.settings.value.timestamps).toBe(true);
  });

  test("the volume takes effect at once", () => {
    const { page, client } = createTestPage();
    page.change({ volume: 40 });
    expect(client().calls.slice(-2)).toEqual(["setVolume 0.4", 'settings {"volume":40}']);
  });

  test("that were changed by voice take effect, and are kept", () => {
    const local = memoryStorage();
    const { page, client } = createTestPage({ local });
    const told = { theme: null, voice: null, greeting: true, captions: true };
    client().receive({ type: "settings_updated", voice_speed: 80, volume: 60, ...told });
    expect(client().calls.at(-1)).toBe("setVolume 0.6");
    expect([page.settings.value.speed, page.settings.value.volume]).toEqual([80, 60]);
    expect(createTestPage({ local }).page.settings.value.speed).toBe(80);
  });

  test("a voice that is gone is forgotten", () => {
    const { page, client } = createTestPage();
    page.change({ voice: "gone" });
    client().receive({ type: "error", message: "No such voice.", code: "bad_settings", retryable: false });
    expect(page.settings.value.voice).toBe("");
  });
});

describe("the conversation", () => {
  test("continues after a reload", () => {
    const tab = memoryStorage();
    const first = createTestPage({ tab });
    first.client().conversationId = "c1";
    first.client().receive(transcript("Hi"));
    expect(createTestPage({ tab }).client().options.conversationId).toBe("c1");
  });

  test("a new one starts with a new session and an empty thread", () => {
    const { page, client, clients } = createTestPage();
    client().conversationId = "c1";
    client().receive(transcript("Hi"));
    page.startNew();
    expect(clients[0]!.calls.at(-1)).toBe("close");
    expect(client().calls.at(-1)).toBe("connect");
    expect(client().options.conversationId).toBeUndefined();
    expect(page.state.value.items).toEqual([]);
  });

  test("a session that was left has no effect any more", () => {
    const { page, clients } = createTestPage();
    page.startNew();
    clients[0]!.receive(transcript("too late"));
    expect(page.state.value.items).toEqual([]);
  });

  test("continues from a call with its summary", () => {
    const { page, client } = createTestPage();
    page.continueFrom({ ...CALL, summary: "Tea at five." });
    expect(client().options.initialMessages).toEqual([
      { role: "assistant", content: "Summary of our earlier call: Tea at five." },
    ]);
  });

  test("that continues from a call has its summary after a reload, until the server has stored it", () => {
    const tab = memoryStorage();
    const first = createTestPage({ tab });
    first.page.continueFrom({ ...CALL, summary: "Tea at five." });
    const second = createTestPage({ tab });
    expect(second.client().options.initialMessages).toEqual(first.client().options.initialMessages);
    second.client().conversationId = "c2";
    second.client().receive(transcript("Hi"));
    expect(createTestPage({ tab }).client().options).toEqual({ conversationId: "c2" });
  });

  test("that starts empty does not have the summary of another one", () => {
    const tab = memoryStorage();
    const { page } = createTestPage({ tab });
    page.continueFrom({ ...CALL, summary: "Tea at five." });
    page.startNew();
    expect(createTestPage({ tab }).client().options).toEqual({});
  });

  test.each(["not JSON", '{"a":1}', '[{"role":"system","content":"x"}]', "[null]"])("ignores the stored beginning %s", (stored) => {
    const tab = memoryStorage();
    tab.setItem("antiphon.beginning", stored);
    expect(createTestPage({ tab }).client().options).toEqual({});
  });

  test.each(["", "Summary unavailable."])("continues from a call with the summary %j with its last turns", (summary) => {
    const { page, client } = createTestPage();
    const transcript = Array.from({ length: 9 }, (_, seq) => ({ seq, role: "user" as const, content: `${seq}`, spoken: true, at: null, calls: [] }));
    page.continueFrom({ ...CALL, summary, transcript });
    expect(client().options.initialMessages?.map(({ content }) => content)).toEqual(["5", "6", "7", "8"]);
  });

  test("the token is stored for the tab, and the handle nowhere", () => {
    const tab = memoryStorage();
    const local = memoryStorage();
    const kept: string[] = [];
    for (const store of [tab, local]) {
      const { setItem } = store;
      store.setItem = (key, value) => (kept.push(`${key}=${value}`), setItem(key, value));
    }
    const { page, client } = createTestPage({ tab, local });
    page.connect("secret");
    client().receive({ type: "session", n: 2, session_id: "s", conversation_id: "c", resume: "HANDLE", resumed: false, mode: "text" });
    page.change({ theme: "teal" });
    expect(kept.join()).not.toContain("HANDLE");
    expect(createTestPage({ tab }).client().options.token).toBe("secret");
  });
});

describe("the model", () => {
  test("starts anew for the session that is open", async () => {
    const { page, client, records } = createTestPage();
    client().receive({ type: "session", n: 2, session_id: "s7", conversation_id: "c", resume: "h", resumed: false, mode: "text" });
    await page.renewModel();
    expect(records.renewed).toEqual(["s7"]);
  });

  test("cannot start anew without a session", async () => {
    await expect(createTestPage().page.renewModel()).rejects.toThrow("Try again once the page is connected.");
  });

  test("is asked for when the page has connected, and whenever the model may have changed", async () => {
    const { page, client } = createTestPage({ models: [{ name: "cascade", mode: "voice" }] });
    client().emit("connection", OPEN);
    await settled();
    expect(page.state.value.energy.voice).toMatchObject({ level: 3, max: 3, model: "best" });
    client().receive({ type: "notice", kind: "warning", text: "The local model answers.", code: "local_model", duration_ms: null });
    await settled();
    expect(page.state.value.energy.voice).toMatchObject({ level: 3, model: "best" });
  });
});
