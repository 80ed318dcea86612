import { describe, expect, test } from "vitest";
import type { AssistantItem, ToolItem } from "../../src/view/state";
import { at, chunk, finalText, interim, NOW, open, outline, played, see, whole } from "./told";

describe("what the user says", () => {
  test("interim words are replaced in place", () => {
    const state = see([interim("what is"), interim("what is the weather"), finalText("What is the weather?")]);
    expect(outline(state)).toEqual(["user final: What is the weather?"]);
  });

  test("an interim turn keeps its key when it becomes final", () => {
    const before = see([interim("what")]);
    const after = see([finalText("What?")], before);
    expect(after.items[0]?.key).toBe(before.items[0]?.key);
  });

  test("a final turn that continues the one before it replaces it", () => {
    const state = see([finalText("What's the weather"), finalText("what's the weather in Lisbon?")]);
    expect(outline(state)).toEqual(["user final: what's the weather in Lisbon?"]);
  });

  test("words that go on from an unanswered turn are shown in its place", () => {
    const state = see([finalText("Tell me a joke."), interim("tell me a joke about")]);
    expect(outline(state)).toEqual(["user final: tell me a joke about"]);
  });

  test("the answer to the first half of a turn is dropped with it", () => {
    const half = [at("processing"), finalText("Set a timer"), chunk("For how", true), at("listening")];
    const state = see([...half, at("processing"), finalText("Set a timer for tea."), whole("Done.")]);
    expect(outline(state)).toEqual(["user final: Set a timer for tea.", "assistant final: Done."]);
  });

  test("the same words after an answer are a turn of their own", () => {
    const state = see([finalText("Again"), whole("Once."), finalText("Again please")]);
    expect(outline(state)).toEqual(["user final: Again", "assistant final: Once.", "user final: Again please"]);
  });

  test("another sentence without an answer between is a turn of its own", () => {
    const state = see([finalText("Hello."), finalText("Is anybody there?")]);
    expect(state.items).toHaveLength(2);
  });

  test("typed text is shown at once and settled by its transcript", () => {
    const sent = see([{ type: "said", text: "hi" }]);
    expect(outline(sent)).toEqual(["user sending: hi"]);
    expect(outline(see([finalText("hi")], sent))).toEqual(["user final: hi"]);
  });

  test("typed text that begins like the one before it stays apart", () => {
    const state = see([{ type: "said", text: "hi" }, { type: "said", text: "hi there" }, finalText("hi"), finalText("hi there")]);
    expect(outline(state)).toEqual(["user final: hi", "user final: hi there"]);
  });

  test("an interim text that is empty adds nothing", () => {
    expect(see([interim("")]).items).toEqual([]);
  });
});

describe("what the assistant says", () => {
  test("chunks grow into one answer, which the whole one replaces", () => {
    const state = see([chunk("It's", true), chunk(" si"), whole("It's six.")]);
    expect(outline(state)).toEqual(["assistant final: It's six."]);
  });

  test("an answer without chunks is shown once", () => {
    expect(outline(see([whole("Hello.")]))).toEqual(["assistant final: Hello."]);
  });

  test("an answer is split by the tools that it used", () => {
    const call = { type: "tool_call", name: "get_weather", args: {}, id: "a" } as const;
    const result = { type: "tool_result", name: "get_weather", result: {}, id: "a", ok: true, duration_ms: 5 } as const;
    const state = see([chunk("Let me see.", true), call, result, chunk(" Sunny."), whole("Let me see. Sunny today.")]);
    expect(outline(state)).toEqual(["assistant final: Let me see.", "tool done: get_weather", "assistant final:  Sunny today."]);
  });

  test("an answer that differs from its chunks wins, and nothing is said twice", () => {
    const call = { type: "tool_call", name: "t", args: {}, id: "a" } as const;
    const state = see([chunk("Hm", true), call, chunk(" yes"), whole("Certainly.")]);
    expect(outline(state)).toEqual(["tool running: t", "assistant final: Certainly."]);
  });

  test("a new answer leaves an unfinished one as it is", () => {
    const state = see([chunk("One", true), chunk("Two", true), whole("Two.")]);
    expect(outline(state)).toEqual(["assistant dropped: One", "assistant final: Two."]);
  });

  test("an answer that was given up is marked", () => {
    const state = see([at("processing"), chunk("Well", true), at("idle")]);
    expect(outline(state)).toEqual(["assistant dropped: Well"]);
  });

  test("an empty answer adds nothing", () => {
    expect(see([chunk("", true), whole("")]).items).toEqual([]);
  });
});

describe("an interruption", () => {
  const spoken = [finalText("Go"), chunk("One two three four five six seven", true), whole("One two three four five six seven")];
  const answerOf = (state: ReturnType<typeof see>) =>
    state.items.find((item): item is AssistantItem => item.kind === "assistant")!;

  test("marks what was not heard, at the end of a word", () => {
    const state = see([...spoken, at("speaking"), played(80 * 9), played(80 * 9, false), at("interrupted")]);
    const { status, text, heardChars } = answerOf(state);
    expect(status).toBe("interrupted");
    expect(text.slice(0, heardChars!)).toBe("One two three");
  });

  test("before the first sound leaves all of it unheard", () => {
    expect(answerOf(see([...spoken, at("speaking"), at("interrupted")])).heardChars).toBe(0);
  });

  test("of an answer that is only written leaves all of it read", () => {
    const state = see([at("processing"), finalText("Go"), chunk("One", true), at("interrupted")]);
    expect(answerOf(state)).toMatchObject({ status: "interrupted", heardChars: null });
  });

  test("by a typed message, which is on its way, marks the answer before it", () => {
    const state = see([...spoken, at("speaking"), { type: "said", text: "stop" }, at("interrupted"), finalText("stop")]);
    expect(outline(state)).toEqual(["user final: Go", `assistant interrupted: ${spoken[2]!["text"]}`, "user final: stop"]);
  });

  test("of a turn without an answer leaves the earlier answer alone", () => {
    const state = see([...spoken, at("listening"), at("processing"), finalText("More"), at("interrupted")]);
    expect(answerOf(state).status).toBe("final");
  });

  test("is placed by the part of the sound that was played, once all of it has come", () => {
    // A slow voice: half of its sound is half of its words, however long it took.
    const state = see([...spoken, at("speaking"), played(4000, false, 8000, true), at("interrupted")]);
    const { text, heardChars } = answerOf(state);
    expect(text.slice(0, heardChars!)).toBe("One two three four");
  });

  test("after the last sample leaves nothing unheard", () => {
    const state = see([...spoken, at("speaking"), played(8000, false, 8000, true), at("interrupted")]);
    expect(answerOf(state).heardChars).toBeNull();
  });

  test("of an answer that is still coming is placed by the pace of the one before", () => {
    const before = "abcde abcde abcde abcde abcde";
    const slow = see([whole(before), at("speaking"), played(0, true, 150 * before.length, true), at("listening")]);
    const state = see([...spoken, at("speaking"), played(150 * 9, false, 150 * 12), at("interrupted")], slow);
    const { text, heardChars } = state.items.findLast((item): item is AssistantItem => item.kind === "assistant")!;
    expect(text.slice(0, heardChars!)).toBe("One two three");
  });

  test("by what the history says gives way to it", () => {
    const heard = { role: "assistant", content: "One two", spoken: true, at: null };
    const cut = see([...spoken, at("speaking"), played(4000, false, 8000, true), at("interrupted")]);
    const state = see([{ type: "history", conversation_id: "c1", turns: [heard] }], cut);
    expect(answerOf(state)).toMatchObject({ text: "One two", status: "final", heardChars: null });
  });
});

describe("tools", () => {
  const call = (id: string | null, name = "t") => ({ type: "tool_call", name, args: { a: 1 }, id }) as const;

  test("results find their call by its id, in any order", () => {
    const done = (id: string) => ({ type: "tool_result", name: "t", id, ok: true, result: id, duration_ms: 1 }) as const;
    const state = see([call("a"), call("b"), done("b"), done("a")]);
    expect(state.items.map((item) => (item as ToolItem).result)).toEqual(["a", "b"]);
  });

  test("without an id a result belongs to the newest call of that name", () => {
    const state = see([call(null), call(null, "u"), { type: "tool_result", name: "t", result: { error: "no" } }]);
    expect(outline(state)).toEqual(["tool failed: t", "tool running: u"]);
  });

  test("a result without a call is shown all the same", () => {
    expect(outline(see([{ type: "tool_result", name: "t", result: 1, ok: true, id: "z" }]))).toEqual(["tool done: t"]);
  });

  test("what ran in a session that is gone is marked as lost", () => {
    expect(outline(see([call("a"), open("new", "Expired.")]))[0]).toBe("tool lost: t");
  });

  test("a call that is told twice is shown once", () => {
    expect(see([call("a"), call("a")]).items).toHaveLength(1);
  });
});

describe("flyouts", () => {
  const flyout = (flyout_type: string, content: string) => ({ type: "flyout", flyout_type, content }) as const;

  test("text of the terminal is added to what it shows", () => {
    const state = see([flyout("terminal", "$ ls"), flyout("terminal", "a.txt")]);
    expect(state.flyouts.map(({ content }) => content)).toEqual(["$ ls\na.txt"]);
  });

  test("one that was closed can be opened again from the thread", () => {
    const state = see([flyout("code", "x = 1"), { type: "flyout_closed" }]);
    expect(state.openFlyout).toBeNull();
    expect(state.items[0]).toMatchObject({ kind: "flyout", flyout: state.flyouts[0]!.key });
  });

  test("the newest is the one that is shown", () => {
    const state = see([flyout("code", "1"), flyout("browser", "https://example.org")]);
    expect(state.flyouts.find(({ key }) => key === state.openFlyout)?.type).toBe("browser");
  });
});

describe("history", () => {
  const turns = [{ role: "user", content: "Hi", at: 5 }, { role: "assistant", content: "Hello.", at: 6 }];

  test("replaces the thread", () => {
    const state = see([finalText("old"), { type: "history", conversation_id: "c2", turns }]);
    expect(outline(state)).toEqual(["user final: Hi", "assistant final: Hello."]);
    expect(state.conversationId).toBe("c2");
  });

  test.each(["a", "b"])("shows a call that was approved as one card, whichever id its run has", (id) => {
    const question = { error: { type: "CONFIRMATION_REQUIRED" } };
    const asked = { id: "a", name: "send", args: { to: "ana" }, result: question, ok: false };
    const run = { id, name: "send", args: {}, result: { sent: true }, ok: true };
    const told = [
      { role: "assistant", content: "Shall I?", calls: [asked] },
      { role: "assistant", content: "Done.", calls: [run] },
    ];
    const state = see([{ type: "history", conversation_id: "c", turns: told }]);
    expect(outline(state)).toEqual(["tool done: send", "assistant final: Shall I?", "assistant final: Done."]);
    expect(state.items[0]).toMatchObject({ args: { to: "ana" }, result: { sent: true } });
  });

  test("leaves what was typed meanwhile", () => {
    const state = see([{ type: "said", text: "wait" }, { type: "history", conversation_id: "c2", turns }]);
    expect(outline(state).at(-1)).toBe("user sending: wait");
  });

  test("keeps the times of its turns", () => {
    expect(see([{ type: "history", conversation_id: "c", turns }], undefined, NOW).items[0]?.at).toBe(5);
  });
});
