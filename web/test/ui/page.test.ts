import { describe, expect, test } from "vitest";
import { memoryStorage, createTestPage } from "./fake-client";
import { transcript } from "../view/messages";

const OPEN = { state: "open", session: "first", reason: null } as const;
const settled = () => new Promise((resolve) => setTimeout(resolve));

describe("talking", () => {
  test("hands-free begins and ends with the same button", () => {
    const { page, client } = createTestPage();
    page.toggleTalk();
    expect(page.state.value.talk).toBe("hands_free");
    page.toggleTalk();
    expect(client().calls.slice(-2)).toEqual(["startVoice", "endVoice"]);
    expect(page.state.value.talk).toBe("off");
  });

  test("push-to-talk lasts as long as it is pressed", () => {
    const { page, client } = createTestPage();
    page.press();
    page.press();
    expect(page.state.value.talk).toBe("held");
    page.release();
    page.release();
    expect(client().calls.filter((asked) => asked.includes("Listening"))).toEqual(["startListening", "stopListening"]);
  });

  test("push-to-talk in a call silences the assistant and does not end the call", () => {
    const { page, client } = createTestPage();
    page.toggleTalk();
    client().emit("microphone", { state: "on", muted: true, label: "" });
    page.press();
    page.release();
    expect(client().calls.slice(-3)).toEqual(["mute false", "interrupt", "mute true"]);
    expect(page.state.value.talk).toBe("hands_free");
  });

  test("without a microphone is over at once", async () => {
    const { page, outcome } = createTestPage();
    outcome.error = new Error("denied");
    page.toggleTalk();
    await settled();
    expect(page.state.value.talk).toBe("off");
  });

  test("begins when the conversation is to go on in voice, with what was asked", () => {
    const { client } = createTestPage();
    client().tell({ type: "voice_session_start", session_id: "s", pending_request: "the weather" });
    expect(client().calls.at(-1)).toBe("startVoice the weather");
  });
});

describe("writing", () => {
  test("is shown and sent, without the blanks around it", () => {
    const { page, client } = createTestPage();
    page.say("  hello ");
    expect(client().calls.at(-1)).toBe("say hello");
    expect(page.state.value.items).toMatchObject([{ kind: "user", text: "hello", status: "sending" }]);
  });

  test("of nothing is not sent", () => {
    const { page, client } = createTestPage();
    page.say(" \n ");
    expect(client().calls.filter((asked) => asked.startsWith("say"))).toEqual([]);
  });
});

describe("what waits", () => {
  const queued = (...texts: string[]) => ({ type: "queued", messages: texts.map((text) => ({ id: `q${text}`, text })) }) as const;

  test("is taken back by its id", () => {
    const { page, client } = createTestPage();
    client().tell(queued("One", "Two"));
    page.unqueue("qTwo");
    expect(client().calls.at(-1)).toBe("unqueue qTwo");
    client().tell(queued("One"));
    expect(page.state.value.draft).toBe("Two");
  });

  test("comes back with the answer that is stopped", () => {
    const { page, client } = createTestPage();
    client().tell(queued("One", "Two"));
    page.interrupt();
    client().tell(queued());
    expect(page.state.value.draft).toBe("One\nTwo");
  });
});

describe("a server without a voice", () => {
  test("is known by its models, and push-to-talk does nothing there", async () => {
    const { page, client } = createTestPage({ models: [{ name: "builtin", mode: "text" }] });
    client().emit("connection", OPEN);
    await settled();
    expect(page.state.value.hasVoice).toBe(false);
    page.press();
    expect(client().calls).not.toContain("startListening");
  });
});

describe("settings", () => {
  test("that were chosen are told to each new session, the voice by itself", () => {
    const local = memoryStorage();
    local.setItem("antiphon.settings", JSON.stringify({ theme: "rose", voice: "joe" }));
    const { client } = createTestPage({ local });
    client().emit("connection", OPEN);
    expect(client().calls.slice(-2)).toEqual(['settings {"theme":"rose"}', 'settings {"voice":"joe"}']);
  });

  test("are not told again to a session that goes on", () => {
    const local = memoryStorage();
    local.setItem("antiphon.settings", JSON.stringify({ theme: "rose" }));
    const { client } = createTestPage({ local });
    client().emit("connection", { ...OPEN, session: "resumed" });
    expect(client().calls.filter((asked) => asked.startsWith("settings"))).toEqual([]);
  });

  test("of this page only are not told at all", () => {
    const { page, client } = createTestPage();
    page.change({ timestamps: true });
    expect(client().calls.filter((asked) => asked.startsWith("settings"))).toEqual([]);
    expect(page.settings.value.timestamps).toBe(true);
  });

  test("the volume is heard at once", () => {
    const { page, client } = createTestPage();
    page.change({ volume: 40 });
    expect(client().calls.slice(-2)).toEqual(["setVolume 0.4", 'settings {"volume":40}']);
  });

  test("a voice that is gone is forgotten", () => {
    const { page, client } = createTestPage();
    page.change({ voice: "gone" });
    client().tell({ type: "error", message: "No such voice.", code: "bad_settings", retryable: false });
    expect(page.settings.value.voice).toBe("");
  });
});

describe("the conversation", () => {
  test("goes on after a reload", () => {
    const tab = memoryStorage();
    const first = createTestPage({ tab });
    first.client().conversationId = "c1";
    first.client().tell(transcript("Hi"));
    expect(createTestPage({ tab }).client().options.conversationId).toBe("c1");
  });

  test("a new one begins with a new session and an empty thread", () => {
    const { page, client, clients } = createTestPage();
    client().conversationId = "c1";
    client().tell(transcript("Hi"));
    page.startNew();
    expect(clients[0]!.calls.at(-1)).toBe("close");
    expect(client().calls.at(-1)).toBe("connect");
    expect(client().options.conversationId).toBeUndefined();
    expect(page.state.value.items).toEqual([]);
  });

  test("a session that was left says nothing more", () => {
    const { page, clients } = createTestPage();
    page.startNew();
    clients[0]!.tell(transcript("too late"));
    expect(page.state.value.items).toEqual([]);
  });

  test("continues from a call with its summary", () => {
    const { page, client } = createTestPage();
    const call = { id: "k", conversation_id: "c", started_ms: 1, duration_ms: 1, summary: "Tea at five.", models: [], transcript: [] };
    page.continueFrom(call);
    expect(client().options.initialMessages).toEqual([
      { role: "assistant", content: "Summary of our earlier call: Tea at five." },
    ]);
  });

  test("continues from a call without a summary with its last turns", () => {
    const { page, client } = createTestPage();
    const transcript = Array.from({ length: 9 }, (_, index) => ({ role: "user" as const, content: `${index}`, spoken: true, at: null, calls: [] }));
    page.continueFrom({ id: "k", conversation_id: "c", started_ms: 1, duration_ms: 1, summary: "", models: [], transcript });
    expect(client().options.initialMessages?.map(({ content }) => content)).toEqual(["5", "6", "7", "8"]);
  });

  test("the token is kept for the tab, and the handle nowhere", () => {
    const tab = memoryStorage();
    const local = memoryStorage();
    const kept: string[] = [];
    for (const store of [tab, local]) {
      const { setItem } = store;
      store.setItem = (key, value) => (kept.push(`${key}=${value}`), setItem(key, value));
    }
    const { page, client } = createTestPage({ tab, local });
    page.connect("secret");
    client().tell({ type: "session", n: 2, session_id: "s", conversation_id: "c", resume: "HANDLE", resumed: false, mode: "text" });
    page.change({ theme: "teal" });
    expect(kept.join()).not.toContain("HANDLE");
    expect(createTestPage({ tab }).client().options.token).toBe("secret");
  });
});
