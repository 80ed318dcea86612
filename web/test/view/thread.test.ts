import { describe, expect, test } from "vitest";
import type { AssistantItem, ToolItem } from "../../src/view/state";
import { serverState, chunk, transcript, interim, NOW, open, outline, played, reduceAll, response } from "./messages";

describe("what the user says", () => {
  test("interim words are replaced in place", () => {
    const state = reduceAll([interim("what is"), interim("what is the weather"), transcript("What is the weather?")]);
    expect(outline(state)).toEqual(["user final: What is the weather?"]);
  });

  test("an interim turn keeps its key when it becomes final", () => {
    const before = reduceAll([interim("what")]);
    const after = reduceAll([transcript("What?")], before);
    expect(after.items[0]?.key).toBe(before.items[0]?.key);
  });

  test("a final turn that continues the one before it replaces it", () => {
    const state = reduceAll([transcript("What's the weather"), transcript("what's the weather in Lisbon?")]);
    expect(outline(state)).toEqual(["user final: what's the weather in Lisbon?"]);
  });

  test("words that continue an unanswered turn are shown in its place", () => {
    const state = reduceAll([transcript("Tell me a joke."), interim("tell me a joke about")]);
    expect(outline(state)).toEqual(["user final: tell me a joke about"]);
  });

  test("the answer to the first half of a turn is dropped with it", () => {
    const half = [serverState("processing"), transcript("Set a timer"), chunk("For how", true), serverState("listening")];
    const state = reduceAll([...half, serverState("processing"), transcript("Set a timer for tea."), response("Done.")]);
    expect(outline(state)).toEqual(["user final: Set a timer for tea.", "assistant final: Done."]);
  });

  test("the same words after an answer are a separate turn", () => {
    const state = reduceAll([transcript("Again"), response("Once."), transcript("Again please")]);
    expect(outline(state)).toEqual(["user final: Again", "assistant final: Once.", "user final: Again please"]);
  });

  test("another sentence without an answer in between is a separate turn", () => {
    const state = reduceAll([transcript("Hello."), transcript("Is anybody there?")]);
    expect(state.items).toHaveLength(2);
  });

  test("typed text is shown at once and confirmed by its transcript", () => {
    const sent = reduceAll([{ type: "message_typed", text: "hi" }]);
    expect(outline(sent)).toEqual(["user sending: hi"]);
    expect(outline(reduceAll([transcript("hi")], sent))).toEqual(["user final: hi"]);
  });

  test("typed text that begins like the one before it stays separate", () => {
    const state = reduceAll([{ type: "message_typed", text: "hi" }, { type: "message_typed", text: "hi there" }, transcript("hi"), transcript("hi there")]);
    expect(outline(state)).toEqual(["user final: hi", "user final: hi there"]);
  });

  test("an empty interim transcript adds nothing", () => {
    expect(reduceAll([interim("")]).items).toEqual([]);
  });
});

describe("what the assistant says", () => {
  test("chunks grow into one answer, which the complete one replaces", () => {
    const state = reduceAll([chunk("It's", true), chunk(" si"), response("It's six.")]);
    expect(outline(state)).toEqual(["assistant final: It's six."]);
  });

  test("an answer without chunks is shown once", () => {
    expect(outline(reduceAll([response("Hello.")]))).toEqual(["assistant final: Hello."]);
  });

  test("an answer is split by its tool calls", () => {
    const call = { type: "tool_call", name: "get_weather", args: {}, id: "a" } as const;
    const result = { type: "tool_result", name: "get_weather", result: {}, id: "a", ok: true, duration_ms: 5 } as const;
    const state = reduceAll([chunk("Let me see.", true), call, result, chunk(" Sunny."), response("Let me see. Sunny today.")]);
    expect(outline(state)).toEqual(["assistant final: Let me see.", "tool done: get_weather", "assistant final:  Sunny today."]);
  });

  test("a complete answer that differs from its chunks wins, and nothing is shown twice", () => {
    const call = { type: "tool_call", name: "t", args: {}, id: "a" } as const;
    const state = reduceAll([chunk("Hm", true), call, chunk(" yes"), response("Certainly.")]);
    expect(outline(state)).toEqual(["tool running: t", "assistant final: Certainly."]);
  });

  test("a new answer leaves an unfinished one in place", () => {
    const state = reduceAll([chunk("One", true), chunk("Two", true), response("Two.")]);
    expect(outline(state)).toEqual(["assistant dropped: One", "assistant final: Two."]);
  });

  test("an abandoned answer is marked", () => {
    const state = reduceAll([serverState("processing"), chunk("Well", true), serverState("idle")]);
    expect(outline(state)).toEqual(["assistant dropped: Well"]);
  });

  test("an empty answer adds nothing", () => {
    expect(reduceAll([chunk("", true), response("")]).items).toEqual([]);
  });
});

describe("an interruption", () => {
  const spoken = [transcript("Go"), chunk("One two three four five six seven", true), response("One two three four five six seven")];
  const answerOf = (state: ReturnType<typeof reduceAll>) =>
    state.items.find((item): item is AssistantItem => item.kind === "assistant")!;

  test("marks what was not heard, at the end of a word", () => {
    const state = reduceAll([...spoken, serverState("speaking"), played(80 * 9), played(80 * 9, false), serverState("interrupted")]);
    const { status, text, heardChars } = answerOf(state);
    expect(status).toBe("interrupted");
    expect(text.slice(0, heardChars!)).toBe("One two three");
  });

  test("before the first sound leaves all of it unheard", () => {
    expect(answerOf(reduceAll([...spoken, serverState("speaking"), serverState("interrupted")])).heardChars).toBe(0);
  });

  test("of an answer that is only text leaves all of it unmarked", () => {
    const state = reduceAll([serverState("processing"), transcript("Go"), chunk("One", true), serverState("interrupted")]);
    expect(answerOf(state)).toMatchObject({ status: "interrupted", heardChars: null });
  });

  test("by a typed message that is being sent marks the answer before it", () => {
    const state = reduceAll([...spoken, serverState("speaking"), { type: "message_typed", text: "stop" }, serverState("interrupted"), transcript("stop")]);
    expect(outline(state)).toEqual(["user final: Go", `assistant interrupted: ${spoken[2]!["text"]}`, "user final: stop"]);
  });

  test("of a turn without an answer leaves the earlier answer alone", () => {
    const state = reduceAll([...spoken, serverState("listening"), serverState("processing"), transcript("More"), serverState("interrupted")]);
    expect(answerOf(state).status).toBe("final");
  });

  test("is placed by the share of the audio that was played, once all of it has arrived", () => {
    // With a slow voice, half of the audio is still half of the words.
    const state = reduceAll([...spoken, serverState("speaking"), played(4000, false, 8000, true), serverState("interrupted")]);
    const { text, heardChars } = answerOf(state);
    expect(text.slice(0, heardChars!)).toBe("One two three four");
  });

  test("after the last sample leaves nothing unheard", () => {
    const state = reduceAll([...spoken, serverState("speaking"), played(8000, false, 8000, true), serverState("interrupted")]);
    expect(answerOf(state).heardChars).toBeNull();
  });

  test("of an answer that is still arriving is placed by the speech rate of the one before", () => {
    const before = "abcde abcde abcde abcde abcde";
    const slow = reduceAll([response(before), serverState("speaking"), played(0, true, 150 * before.length, true), serverState("listening")]);
    const state = reduceAll([...spoken, serverState("speaking"), played(150 * 9, false, 150 * 12), serverState("interrupted")], slow);
    const { text, heardChars } = state.items.findLast((item): item is AssistantItem => item.kind === "assistant")!;
    expect(text.slice(0, heardChars!)).toBe("One two three");
  });

  test("is overridden by the history", () => {
    const heard = { role: "assistant", content: "One two", spoken: true, at: null };
    const cut = reduceAll([...spoken, serverState("speaking"), played(4000, false, 8000, true), serverState("interrupted")]);
    const state = reduceAll([{ type: "history", conversation_id: "c1", turns: [heard] }], cut);
    expect(answerOf(state)).toMatchObject({ text: "One two", status: "final", heardChars: null });
  });
});

describe("tools", () => {
  const call = (id: string | null, name = "t") => ({ type: "tool_call", name, args: { a: 1 }, id }) as const;

  test("results find their call by its id, in any order", () => {
    const done = (id: string) => ({ type: "tool_result", name: "t", id, ok: true, result: id, duration_ms: 1 }) as const;
    const state = reduceAll([call("a"), call("b"), done("b"), done("a")]);
    expect(state.items.map((item) => (item as ToolItem).result)).toEqual(["a", "b"]);
  });

  test("without an id a result belongs to the newest call of that name", () => {
    const state = reduceAll([call(null), call(null, "u"), { type: "tool_result", name: "t", result: { error: "no" } }]);
    expect(outline(state)).toEqual(["tool failed: t", "tool running: u"]);
  });

  test("a result without a call is shown anyway", () => {
    expect(outline(reduceAll([{ type: "tool_result", name: "t", result: 1, ok: true, id: "z" }]))).toEqual(["tool done: t"]);
  });

  test("calls of a session that is gone are marked as lost", () => {
    expect(outline(reduceAll([call("a"), open("new", "Expired.")]))[0]).toBe("tool lost: t");
  });

  test("a call that is reported twice is shown once", () => {
    expect(reduceAll([call("a"), call("a")]).items).toHaveLength(1);
  });
});

describe("flyouts", () => {
  const flyout = (flyout_type: string, content: string) => ({ type: "flyout", flyout_type, content }) as const;

  test("terminal output is appended", () => {
    const state = reduceAll([flyout("terminal", "$ ls"), flyout("terminal", "a.txt")]);
    expect(state.flyouts.map(({ content }) => content)).toEqual(["$ ls\na.txt"]);
  });

  test("a closed flyout can be opened again from the thread", () => {
    const state = reduceAll([flyout("code", "x = 1"), { type: "flyout_closed" }]);
    expect(state.openFlyout).toBeNull();
    expect(state.items[0]).toMatchObject({ kind: "flyout", flyout: state.flyouts[0]!.key });
  });

  test("the newest one is shown", () => {
    const state = reduceAll([flyout("code", "1"), flyout("browser", "https://example.org")]);
    expect(state.flyouts.find(({ key }) => key === state.openFlyout)?.type).toBe("browser");
  });
});

describe("history", () => {
  const turns = [{ role: "user", content: "Hi", at: 5 }, { role: "assistant", content: "Hello.", at: 6 }];

  test("replaces the thread", () => {
    const state = reduceAll([transcript("old"), { type: "history", conversation_id: "c2", turns }]);
    expect(outline(state)).toEqual(["user final: Hi", "assistant final: Hello."]);
    expect(state.conversationId).toBe("c2");
  });

  test.each(["a", "b"])("shows an approved call as one card, whichever id its run has", (id) => {
    const question = { error: { type: "CONFIRMATION_REQUIRED" } };
    const asked = { id: "a", name: "send", args: { to: "ana" }, result: question, ok: false };
    const run = { id, name: "send", args: {}, result: { sent: true }, ok: true };
    const turns = [
      { role: "assistant", content: "Shall I?", calls: [asked] },
      { role: "assistant", content: "Done.", calls: [run] },
    ];
    const state = reduceAll([{ type: "history", conversation_id: "c", turns }]);
    expect(outline(state)).toEqual(["tool done: send", "assistant final: Shall I?", "assistant final: Done."]);
    expect(state.items[0]).toMatchObject({ args: { to: "ana" }, result: { sent: true } });
  });

  test("keeps what was typed meanwhile", () => {
    const state = reduceAll([{ type: "message_typed", text: "wait" }, { type: "history", conversation_id: "c2", turns }]);
    expect(outline(state).at(-1)).toBe("user sending: wait");
  });

  test("keeps the times of its turns", () => {
    expect(reduceAll([{ type: "history", conversation_id: "c", turns }], undefined, NOW).items[0]?.at).toBe(5);
  });
});
