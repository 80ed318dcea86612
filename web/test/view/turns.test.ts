import { describe, expect, test } from "vitest";
import { toMarkdown } from "../../src/view/format";
import { serverState, chunk, transcript, inTurn, interim, open, outline, played, reduceAll, type TestMessage, response } from "./messages";

const QUESTION = inTurn(1, transcript("What time is it?"));
const ANSWER = [inTurn(1, chunk("It's", true)), inTurn(1, chunk(" six.")), inTurn(1, response("It's six."))];
const ANSWERED = ["user final: What time is it?", "assistant final: It's six."];
const TOOL: TestMessage[] = [
  { type: "tool_call", name: "get_time", args: {}, id: "a" },
  { type: "tool_result", name: "get_time", result: {}, id: "a", ok: true, duration_ms: 5 },
];
const NEXT = [serverState("listening"), serverState("processing")];

describe("the transcript of a numbered turn", () => {
  test.each([0, 1, 2, 3])("is placed before its answer if it arrives after %i parts of it", (parts) => {
    const messages = [...ANSWER.slice(0, parts), QUESTION, ...ANSWER.slice(parts)];
    expect(outline(reduceAll([serverState("processing"), ...messages, serverState("listening")]))).toEqual(ANSWERED);
  });

  test("is placed before its answer if it arrives after that was played to its end", () => {
    const state = reduceAll([serverState("processing"), ...ANSWER, serverState("speaking"), played(900, false, 900, true), serverState("listening"), QUESTION]);
    expect(outline(state)).toEqual(ANSWERED);
    expect(toMarkdown(state.items)).toBe("**You:** What time is it?\n\n**Antiphon:** It's six.\n");
  });

  test("may never arrive: the answer then stands alone, with the next turn below it", () => {
    const next = [...NEXT, inTurn(2, transcript("And the date?")), inTurn(2, response("May 4."))];
    expect(outline(reduceAll([serverState("processing"), ...ANSWER, ...next]))).toEqual([
      "assistant final: It's six.", "user final: And the date?", "assistant final: May 4.",
    ]);
  });

  test("is placed in its own turn if a newer one is already shown", () => {
    const next = [...NEXT, inTurn(2, transcript("And the date?")), inTurn(2, response("May 4."))];
    const state = reduceAll([serverState("processing"), ...ANSWER, ...next, QUESTION]);
    expect(outline(state)).toEqual([...ANSWERED, "user final: And the date?", "assistant final: May 4."]);
  });

  test("is placed above a newer turn if its own had no answer", () => {
    const next = [...NEXT, inTurn(2, transcript("And the date?")), inTurn(2, response("May 4."))];
    const state = reduceAll([serverState("processing"), ...next, QUESTION]);
    expect(outline(state)).toEqual([ANSWERED[0], "user final: And the date?", "assistant final: May 4."]);
  });

  test("is placed above a newer turn whose transcript was late too", () => {
    const state = reduceAll([serverState("processing"), ...ANSWER, ...NEXT, inTurn(2, response("May 4.")), inTurn(2, transcript("And the date?")), QUESTION]);
    expect(outline(state)).toEqual([...ANSWERED, "user final: And the date?", "assistant final: May 4."]);
  });

  test("is shown once, however often it arrives", () => {
    const corrected = inTurn(1, transcript("What time is it now?"));
    const state = reduceAll([serverState("processing"), QUESTION, ...ANSWER, QUESTION, corrected]);
    expect(outline(state)).toEqual(["user final: What time is it now?", "assistant final: It's six."]);
  });

  test("replaces its interim words, which are placed before the answer too", () => {
    const early = reduceAll([serverState("processing"), ANSWER[0]!, inTurn(1, interim("what time"))]);
    expect(outline(early)).toEqual(["user interim: what time", "assistant streaming: It's"]);
    const state = reduceAll([ANSWER[1]!, ANSWER[2]!, QUESTION], early);
    expect(outline(state)).toEqual(ANSWERED);
    expect(state.items[0]!.key).toBe(early.items[0]!.key);
  });

  test("is not followed by late interim words", () => {
    const state = reduceAll([serverState("processing"), ...ANSWER, QUESTION, inTurn(1, interim("what time is"))]);
    expect(outline(state)).toEqual(ANSWERED);
  });

  test("does not replace the interim words of the turn that is being spoken", () => {
    const state = reduceAll([serverState("processing"), ...ANSWER, serverState("listening"), inTurn(2, interim("and the")), QUESTION]);
    expect(outline(state)).toEqual([...ANSWERED, "user interim: and the"]);
  });

  test("of an earlier turn is not merged with a later one that begins with the same words", () => {
    const state = reduceAll([serverState("processing"), ...NEXT, inTurn(2, transcript("Yes")), inTurn(1, transcript("yes please"))]);
    expect(outline(state)).toEqual(["user final: yes please", "user final: Yes"]);
  });

  test("of a turn that continues the one before it replaces that one, whichever number it has", () => {
    const half = [serverState("processing"), inTurn(1, transcript("Set a timer")), inTurn(1, chunk("For how", true)), serverState("listening")];
    for (const turn of [1, 2]) {
      const state = reduceAll([...half, serverState("processing"), inTurn(turn, transcript("Set a timer for tea.")), inTurn(turn, response("Done."))]);
      expect(outline(state)).toEqual(["user final: Set a timer for tea.", "assistant final: Done."]);
    }
  });

  test("confirms a typed message in place", () => {
    const state = reduceAll([{ type: "message_typed", text: "hi" }, serverState("processing"), inTurn(1, chunk("Hello", true)), inTurn(1, transcript("hi"))]);
    expect(outline(state)).toEqual(["user final: hi", "assistant streaming: Hello"]);
  });
});

describe("tools of a numbered turn", () => {
  const split = [inTurn(1, chunk("Let me see.", true)), ...TOOL, inTurn(1, chunk(" Six.")), inTurn(1, response("Let me see. Six."))];

  test.each([0, 1, 2, 3, 4, 5])("stay below the transcript if it arrives after %i parts", (parts) => {
    const messages = [...split.slice(0, parts), QUESTION, ...split.slice(parts)];
    expect(outline(reduceAll([serverState("processing"), ...messages]))).toEqual([
      ANSWERED[0], "assistant final: Let me see.", "tool done: get_time", "assistant final:  Six.",
    ]);
  });

  test.each([0, 1, 2, 3])("stay below the transcript if they come before any text and it arrives after %i parts", (parts) => {
    const messages = [...TOOL, inTurn(1, response("Six."))];
    const all = [serverState("processing"), ...messages.slice(0, parts), QUESTION, ...messages.slice(parts), serverState("listening")];
    expect(outline(reduceAll(all))).toEqual([ANSWERED[0], "tool done: get_time", "assistant final: Six."]);
  });

  test("of the previous turn stay with that turn", () => {
    const state = reduceAll([serverState("processing"), QUESTION, ...TOOL, ...NEXT, inTurn(2, response("Six.")), inTurn(2, transcript("Well?"))]);
    expect(outline(state)).toEqual([ANSWERED[0], "tool done: get_time", "user final: Well?", "assistant final: Six."]);
  });
});

test("an answer with the number 0 belongs to no turn and is added at the end", () => {
  const state = reduceAll([serverState("processing"), QUESTION, ...ANSWER, serverState("listening"), inTurn(0, response("Tea is ready."))]);
  expect(outline(state)).toEqual([...ANSWERED, "assistant final: Tea is ready."]);
});

describe("two answers at the same time", () => {
  test("are kept apart by their turn numbers", () => {
    const state = reduceAll([
      serverState("processing"), ANSWER[0]!, inTurn(2, chunk("May", true)), ANSWER[1]!, inTurn(2, chunk(" 4.")), ANSWER[2]!, inTurn(2, response("May 4.")),
    ]);
    expect(outline(state)).toEqual(["assistant final: It's six.", "assistant final: May 4."]);
  });

  test("continue above what the user says meanwhile", () => {
    const state = reduceAll([serverState("processing"), ANSWER[0]!, inTurn(2, interim("and")), ANSWER[1]!, QUESTION]);
    expect(outline(state)).toEqual([ANSWERED[0], "assistant streaming: It's six.", "user interim: and"]);
  });
});

describe("a turn without a transcript", () => {
  test("does not mark the previous answer if it is interrupted before its own", () => {
    const state = reduceAll([serverState("processing"), QUESTION, ...ANSWER, ...NEXT, serverState("interrupted")]);
    expect(outline(state)).toEqual(ANSWERED);
  });

  test("marks its own answer if it is interrupted while that is spoken", () => {
    const state = reduceAll([serverState("processing"), QUESTION, ...ANSWER, ...NEXT, inTurn(2, chunk("May 4.", true)), serverState("speaking"), serverState("interrupted")]);
    expect(outline(state)).toEqual([...ANSWERED, "assistant interrupted: May 4."]);
  });
});

describe("the turn numbers of another session", () => {
  test("are unrelated to the earlier ones", () => {
    const state = reduceAll([serverState("processing"), QUESTION, ...ANSWER, open("new"), serverState("processing"), inTurn(1, response("Hello.")), inTurn(1, transcript("Hi"))]);
    expect(outline(state)).toEqual([...ANSWERED, "user final: Hi", "assistant final: Hello."]);
  });

  test("apply below the history after a reload", () => {
    const turns = [
      { role: "user", content: "What time is it?", spoken: true, at: 5, calls: [] },
      { role: "assistant", content: "It's six.", spoken: true, at: 6, calls: [] },
      { role: "assistant", content: "May 4.", spoken: true, at: 7, calls: [] },
    ];
    const reloaded = reduceAll([open("first"), { type: "history", conversation_id: "c", turns }]);
    const state = reduceAll([serverState("processing"), inTurn(1, response("Hello.")), inTurn(1, transcript("Hi"))], reloaded);
    expect(outline(state)).toEqual([...ANSWERED, "assistant final: May 4.", "user final: Hi", "assistant final: Hello."]);
    expect(state.items.map((item) => item.at).slice(0, 3)).toEqual([5, 6, 7]);
  });
});
