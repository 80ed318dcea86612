import { describe, expect, test } from "vitest";
import { toMarkdown } from "../../src/view/words";
import { at, chunk, finalText, inTurn, interim, open, outline, played, see, type Told, whole } from "./told";

const QUESTION = inTurn(1, finalText("What time is it?"));
const ANSWER = [inTurn(1, chunk("It's", true)), inTurn(1, chunk(" six.")), inTurn(1, whole("It's six."))];
const ANSWERED = ["user final: What time is it?", "assistant final: It's six."];
const TOOL: Told[] = [
  { type: "tool_call", name: "get_time", args: {}, id: "a" },
  { type: "tool_result", name: "get_time", result: {}, id: "a", ok: true, duration_ms: 5 },
];
const NEXT = [at("listening"), at("processing")];

describe("the transcript of a numbered turn", () => {
  test.each([0, 1, 2, 3])("stands before its answer if it comes after %i parts of it", (parts) => {
    const told = [...ANSWER.slice(0, parts), QUESTION, ...ANSWER.slice(parts)];
    expect(outline(see([at("processing"), ...told, at("listening")]))).toEqual(ANSWERED);
  });

  test("stands before its answer if it comes when that has been heard to its end", () => {
    const state = see([at("processing"), ...ANSWER, at("speaking"), played(900, false, 900, true), at("listening"), QUESTION]);
    expect(outline(state)).toEqual(ANSWERED);
    expect(toMarkdown(state.items)).toBe("**You:** What time is it?\n\n**Antiphon:** It's six.\n");
  });

  test("may never come: the answer stands alone, and the next turn below it", () => {
    const next = [...NEXT, inTurn(2, finalText("And the date?")), inTurn(2, whole("May 4."))];
    expect(outline(see([at("processing"), ...ANSWER, ...next]))).toEqual([
      "assistant final: It's six.", "user final: And the date?", "assistant final: May 4.",
    ]);
  });

  test("goes to its own turn if a newer one is shown already", () => {
    const next = [...NEXT, inTurn(2, finalText("And the date?")), inTurn(2, whole("May 4."))];
    const state = see([at("processing"), ...ANSWER, ...next, QUESTION]);
    expect(outline(state)).toEqual([...ANSWERED, "user final: And the date?", "assistant final: May 4."]);
  });

  test("goes above a newer turn if its own had no answer", () => {
    const next = [...NEXT, inTurn(2, finalText("And the date?")), inTurn(2, whole("May 4."))];
    const state = see([at("processing"), ...next, QUESTION]);
    expect(outline(state)).toEqual([ANSWERED[0], "user final: And the date?", "assistant final: May 4."]);
  });

  test("goes above a newer turn that has no transcript either", () => {
    const state = see([at("processing"), ...ANSWER, ...NEXT, inTurn(2, whole("May 4.")), inTurn(2, finalText("And the date?")), QUESTION]);
    expect(outline(state)).toEqual([...ANSWERED, "user final: And the date?", "assistant final: May 4."]);
  });

  test("is shown once, however often it comes", () => {
    const corrected = inTurn(1, finalText("What time is it now?"));
    const state = see([at("processing"), QUESTION, ...ANSWER, QUESTION, corrected]);
    expect(outline(state)).toEqual(["user final: What time is it now?", "assistant final: It's six."]);
  });

  test("takes the place of its interim words, which stand before the answer too", () => {
    const early = see([at("processing"), ANSWER[0]!, inTurn(1, interim("what time"))]);
    expect(outline(early)).toEqual(["user interim: what time", "assistant streaming: It's"]);
    const state = see([ANSWER[1]!, ANSWER[2]!, QUESTION], early);
    expect(outline(state)).toEqual(ANSWERED);
    expect(state.items[0]!.key).toBe(early.items[0]!.key);
  });

  test("is not followed by interim words that come too late", () => {
    const state = see([at("processing"), ...ANSWER, QUESTION, inTurn(1, interim("what time is"))]);
    expect(outline(state)).toEqual(ANSWERED);
  });

  test("does not take the interim words of the turn that is being said now", () => {
    const state = see([at("processing"), ...ANSWER, at("listening"), inTurn(2, interim("and the")), QUESTION]);
    expect(outline(state)).toEqual([...ANSWERED, "user interim: and the"]);
  });

  test("of an earlier turn does not continue a later one that begins with the same words", () => {
    const state = see([at("processing"), ...NEXT, inTurn(2, finalText("Yes")), inTurn(1, finalText("yes please"))]);
    expect(outline(state)).toEqual(["user final: yes please", "user final: Yes"]);
  });

  test("of a turn that goes on from the one before it replaces that one, whichever number it has", () => {
    const half = [at("processing"), inTurn(1, finalText("Set a timer")), inTurn(1, chunk("For how", true)), at("listening")];
    for (const turn of [1, 2]) {
      const state = see([...half, at("processing"), inTurn(turn, finalText("Set a timer for tea.")), inTurn(turn, whole("Done."))]);
      expect(outline(state)).toEqual(["user final: Set a timer for tea.", "assistant final: Done."]);
    }
  });

  test("settles a message that was typed, where it stands", () => {
    const state = see([{ type: "said", text: "hi" }, at("processing"), inTurn(1, chunk("Hello", true)), inTurn(1, finalText("hi"))]);
    expect(outline(state)).toEqual(["user final: hi", "assistant streaming: Hello"]);
  });
});

describe("tools of a numbered turn", () => {
  const split = [inTurn(1, chunk("Let me see.", true)), ...TOOL, inTurn(1, chunk(" Six.")), inTurn(1, whole("Let me see. Six."))];

  test.each([0, 1, 2, 3, 4, 5])("leave the transcript above them if it comes after %i parts", (parts) => {
    const told = [...split.slice(0, parts), QUESTION, ...split.slice(parts)];
    expect(outline(see([at("processing"), ...told]))).toEqual([
      ANSWERED[0], "assistant final: Let me see.", "tool done: get_time", "assistant final:  Six.",
    ]);
  });

  test.each([0, 1, 2, 3])("stand below the transcript if they come before any words, and it comes after %i parts", (parts) => {
    const told = [...TOOL, inTurn(1, whole("Six."))];
    const all = [at("processing"), ...told.slice(0, parts), QUESTION, ...told.slice(parts), at("listening")];
    expect(outline(see(all))).toEqual([ANSWERED[0], "tool done: get_time", "assistant final: Six."]);
  });

  test("of the turn before stay with that turn", () => {
    const state = see([at("processing"), QUESTION, ...TOOL, ...NEXT, inTurn(2, whole("Six.")), inTurn(2, finalText("Well?"))]);
    expect(outline(state)).toEqual([ANSWERED[0], "tool done: get_time", "user final: Well?", "assistant final: Six."]);
  });
});

describe("two answers at the same time", () => {
  test("are kept apart by their turns", () => {
    const state = see([
      at("processing"), ANSWER[0]!, inTurn(2, chunk("May", true)), ANSWER[1]!, inTurn(2, chunk(" 4.")), ANSWER[2]!, inTurn(2, whole("May 4.")),
    ]);
    expect(outline(state)).toEqual(["assistant final: It's six.", "assistant final: May 4."]);
  });

  test("go on above what the person says meanwhile", () => {
    const state = see([at("processing"), ANSWER[0]!, inTurn(2, interim("and")), ANSWER[1]!, QUESTION]);
    expect(outline(state)).toEqual([ANSWERED[0], "assistant streaming: It's six.", "user interim: and"]);
  });
});

describe("a turn without a transcript", () => {
  test("that is interrupted before its answer leaves the answer before it alone", () => {
    const state = see([at("processing"), QUESTION, ...ANSWER, ...NEXT, at("interrupted")]);
    expect(outline(state)).toEqual(ANSWERED);
  });

  test("that is interrupted while its answer is spoken marks that answer", () => {
    const state = see([at("processing"), QUESTION, ...ANSWER, ...NEXT, inTurn(2, chunk("May 4.", true)), at("speaking"), at("interrupted")]);
    expect(outline(state)).toEqual([...ANSWERED, "assistant interrupted: May 4."]);
  });
});

describe("the numbers of another session", () => {
  test("have nothing to do with those before", () => {
    const state = see([at("processing"), QUESTION, ...ANSWER, open("new"), at("processing"), inTurn(1, whole("Hello.")), inTurn(1, finalText("Hi"))]);
    expect(outline(state)).toEqual([...ANSWERED, "event: A new session has started.", "user final: Hi", "assistant final: Hello."]);
  });

  test("go on after a reload, below the history in its own order", () => {
    const turns = [
      { role: "user", content: "What time is it?", spoken: true, at: 5, calls: [] },
      { role: "assistant", content: "It's six.", spoken: true, at: 6, calls: [] },
      { role: "assistant", content: "May 4.", spoken: true, at: 7, calls: [] },
    ];
    const reloaded = see([open("first"), { type: "history", conversation_id: "c", turns }]);
    const state = see([at("processing"), inTurn(1, whole("Hello.")), inTurn(1, finalText("Hi"))], reloaded);
    expect(outline(state)).toEqual([...ANSWERED, "assistant final: May 4.", "user final: Hi", "assistant final: Hello."]);
    expect(state.items.map((item) => item.at).slice(0, 3)).toEqual([5, 6, 7]);
  });
});
