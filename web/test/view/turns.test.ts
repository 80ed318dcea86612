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
  test.each([0, 1, 2, 3])("stands before its answer if it comes after %i parts of it", (parts) => {
    const told = [...ANSWER.slice(0, parts), QUESTION, ...ANSWER.slice(parts)];
    expect(outline(reduceAll([serverState("processing"), ...told, serverState("listening")]))).toEqual(ANSWERED);
  });

  test("stands before its answer if it comes when that has been heard to its end", () => {
    const state = reduceAll([serverState("processing"), ...ANSWER, serverState("speaking"), played(900, false, 900, true), serverState("listening"), QUESTION]);
    expect(outline(state)).toEqual(ANSWERED);
    expect(toMarkdown(state.items)).toBe("**You:** What time is it?\n\n**Antiphon:** It's six.\n");
  });

  test("may never come: the answer stands alone, and the next turn below it", () => {
    const next = [...NEXT, inTurn(2, transcript("And the date?")), inTurn(2, response("May 4."))];
    expect(outline(reduceAll([serverState("processing"), ...ANSWER, ...next]))).toEqual([
      "assistant final: It's six.", "user final: And the date?", "assistant final: May 4.",
    ]);
  });

  test("goes to its own turn if a newer one is shown already", () => {
    const next = [...NEXT, inTurn(2, transcript("And the date?")), inTurn(2, response("May 4."))];
    const state = reduceAll([serverState("processing"), ...ANSWER, ...next, QUESTION]);
    expect(outline(state)).toEqual([...ANSWERED, "user final: And the date?", "assistant final: May 4."]);
  });

  test("goes above a newer turn if its own had no answer", () => {
    const next = [...NEXT, inTurn(2, transcript("And the date?")), inTurn(2, response("May 4."))];
    const state = reduceAll([serverState("processing"), ...next, QUESTION]);
    expect(outline(state)).toEqual([ANSWERED[0], "user final: And the date?", "assistant final: May 4."]);
  });

  test("goes above a newer turn that has no transcript either", () => {
    const state = reduceAll([serverState("processing"), ...ANSWER, ...NEXT, inTurn(2, response("May 4.")), inTurn(2, transcript("And the date?")), QUESTION]);
    expect(outline(state)).toEqual([...ANSWERED, "user final: And the date?", "assistant final: May 4."]);
  });

  test("is shown once, however often it comes", () => {
    const corrected = inTurn(1, transcript("What time is it now?"));
    const state = reduceAll([serverState("processing"), QUESTION, ...ANSWER, QUESTION, corrected]);
    expect(outline(state)).toEqual(["user final: What time is it now?", "assistant final: It's six."]);
  });

  test("takes the place of its interim words, which stand before the answer too", () => {
    const early = reduceAll([serverState("processing"), ANSWER[0]!, inTurn(1, interim("what time"))]);
    expect(outline(early)).toEqual(["user interim: what time", "assistant streaming: It's"]);
    const state = reduceAll([ANSWER[1]!, ANSWER[2]!, QUESTION], early);
    expect(outline(state)).toEqual(ANSWERED);
    expect(state.items[0]!.key).toBe(early.items[0]!.key);
  });

  test("is not followed by interim words that come too late", () => {
    const state = reduceAll([serverState("processing"), ...ANSWER, QUESTION, inTurn(1, interim("what time is"))]);
    expect(outline(state)).toEqual(ANSWERED);
  });

  test("does not take the interim words of the turn that is being said now", () => {
    const state = reduceAll([serverState("processing"), ...ANSWER, serverState("listening"), inTurn(2, interim("and the")), QUESTION]);
    expect(outline(state)).toEqual([...ANSWERED, "user interim: and the"]);
  });

  test("of an earlier turn does not continue a later one that begins with the same words", () => {
    const state = reduceAll([serverState("processing"), ...NEXT, inTurn(2, transcript("Yes")), inTurn(1, transcript("yes please"))]);
    expect(outline(state)).toEqual(["user final: yes please", "user final: Yes"]);
  });

  test("of a turn that goes on from the one before it replaces that one, whichever number it has", () => {
    const half = [serverState("processing"), inTurn(1, transcript("Set a timer")), inTurn(1, chunk("For how", true)), serverState("listening")];
    for (const turn of [1, 2]) {
      const state = reduceAll([...half, serverState("processing"), inTurn(turn, transcript("Set a timer for tea.")), inTurn(turn, response("Done."))]);
      expect(outline(state)).toEqual(["user final: Set a timer for tea.", "assistant final: Done."]);
    }
  });

  test("settles a message that was typed, where it stands", () => {
    const state = reduceAll([{ type: "message_typed", text: "hi" }, serverState("processing"), inTurn(1, chunk("Hello", true)), inTurn(1, transcript("hi"))]);
    expect(outline(state)).toEqual(["user final: hi", "assistant streaming: Hello"]);
  });
});

describe("tools of a numbered turn", () => {
  const split = [inTurn(1, chunk("Let me see.", true)), ...TOOL, inTurn(1, chunk(" Six.")), inTurn(1, response("Let me see. Six."))];

  test.each([0, 1, 2, 3, 4, 5])("leave the transcript above them if it comes after %i parts", (parts) => {
    const told = [...split.slice(0, parts), QUESTION, ...split.slice(parts)];
    expect(outline(reduceAll([serverState("processing"), ...told]))).toEqual([
      ANSWERED[0], "assistant final: Let me see.", "tool done: get_time", "assistant final:  Six.",
    ]);
  });

  test.each([0, 1, 2, 3])("stand below the transcript if they come before any words, and it comes after %i parts", (parts) => {
    const told = [...TOOL, inTurn(1, response("Six."))];
    const all = [serverState("processing"), ...told.slice(0, parts), QUESTION, ...told.slice(parts), serverState("listening")];
    expect(outline(reduceAll(all))).toEqual([ANSWERED[0], "tool done: get_time", "assistant final: Six."]);
  });

  test("of the turn before stay with that turn", () => {
    const state = reduceAll([serverState("processing"), QUESTION, ...TOOL, ...NEXT, inTurn(2, response("Six.")), inTurn(2, transcript("Well?"))]);
    expect(outline(state)).toEqual([ANSWERED[0], "tool done: get_time", "user final: Well?", "assistant final: Six."]);
  });
});

describe("two answers at the same time", () => {
  test("are kept apart by their turns", () => {
    const state = reduceAll([
      serverState("processing"), ANSWER[0]!, inTurn(2, chunk("May", true)), ANSWER[1]!, inTurn(2, chunk(" 4.")), ANSWER[2]!, inTurn(2, response("May 4.")),
    ]);
    expect(outline(state)).toEqual(["assistant final: It's six.", "assistant final: May 4."]);
  });

  test("go on above what the person says meanwhile", () => {
    const state = reduceAll([serverState("processing"), ANSWER[0]!, inTurn(2, interim("and")), ANSWER[1]!, QUESTION]);
    expect(outline(state)).toEqual([ANSWERED[0], "assistant streaming: It's six.", "user interim: and"]);
  });
});

describe("a turn without a transcript", () => {
  test("that is interrupted before its answer leaves the answer before it alone", () => {
    const state = reduceAll([serverState("processing"), QUESTION, ...ANSWER, ...NEXT, serverState("interrupted")]);
    expect(outline(state)).toEqual(ANSWERED);
  });

  test("that is interrupted while its answer is spoken marks that answer", () => {
    const state = reduceAll([serverState("processing"), QUESTION, ...ANSWER, ...NEXT, inTurn(2, chunk("May 4.", true)), serverState("speaking"), serverState("interrupted")]);
    expect(outline(state)).toEqual([...ANSWERED, "assistant interrupted: May 4."]);
  });
});

describe("the numbers of another session", () => {
  test("have nothing to do with those before", () => {
    const state = reduceAll([serverState("processing"), QUESTION, ...ANSWER, open("new"), serverState("processing"), inTurn(1, response("Hello.")), inTurn(1, transcript("Hi"))]);
    expect(outline(state)).toEqual([...ANSWERED, "event: A new session has started.", "user final: Hi", "assistant final: Hello."]);
  });

  test("go on after a reload, below the history in its own order", () => {
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
