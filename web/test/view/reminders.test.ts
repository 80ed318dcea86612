import { describe, expect, test } from "vitest";
import { chooseRinging, describeReminder, findUnrung } from "../../src/view/reminders";
import type { Reminder } from "../../src/view/state";
import { initialState } from "../../src/view/state";
import { NOW, open, outline, reduceAll, type TestMessage } from "./messages";

const due = (more: object = {}): TestMessage => ({ type: "reminder", id: "r", message: "Tea", due: NOW, kind: "timer", missed: false, ...more });
const reminder = (more: Partial<Reminder> = {}): Reminder => ({ key: "r@1", message: "Tea", due: 1, kind: "reminder", missed: false, ...more });
const keys = (reminders: readonly Reminder[]) => reminders.map(({ key }) => key);

describe("a reminder", () => {
  test("that is repeated by the server is shown once", () => {
    const state = reduceAll([due(), due()]);
    expect(keys(state.reminders)).toEqual([`r@${NOW}`]);
    expect(outline(state)).toEqual(["event: Timer: Tea"]);
  });

  test("that was dismissed does not come back, not even in another session", () => {
    const state = reduceAll([due(), { type: "reminder_dismissed", key: `r@${NOW}` }, open("new"), due({ n: 1 })]);
    expect(state.reminders).toEqual([]);
  });

  test("that comes back at another time is another one", () => {
    const state = reduceAll([due(), { type: "reminder_dismissed", key: `r@${NOW}` }, due({ due: NOW + 1 })]);
    expect(keys(state.reminders)).toEqual([`r@${NOW + 1}`]);
  });

  test("that was missed says so, with its time", () => {
    const state = reduceAll([due({ kind: "alarm", missed: true })]);
    expect(outline(state)[0]).toMatch(/^event: Missed alarm: Tea \(.*\d\d.*\)$/);
  });

  test("of a kind that the page does not know is a reminder", () => {
    const [added] = reduceAll([due({ kind: "gong" })]).reminders;
    expect(describeReminder(added!)).toBe("Reminder");
  });

  test("of a server that sends no kind is a reminder", () => {
    const state = reduceAll([{ type: "reminder", id: "r", message: "Tea", due: 1 }]);
    expect(state.reminders).toEqual([reminder()]);
  });

  test("survives a cleared conversation", () => {
    expect(reduceAll([due(), { type: "cleared" }]).reminders).toHaveLength(1);
  });

  test("is stacked on those that are shown", () => {
    expect(reduceAll([due(), due({ id: "s" })], initialState()).reminders).toHaveLength(2);
  });
});

describe("ringing", () => {
  test.each([
    ["reminder", false, 2],
    ["timer", false, Infinity],
    ["alarm", false, Infinity],
    ["alarm", true, 1],
  ] as const)("a %s (missed: %s) rings %s times", (kind, missed, times) => {
    const one = reminder({ kind, missed });
    expect(findUnrung([one], new Map([[one.key, Math.min(times, 1000) - 1]]))).toEqual([one]);
    if (times !== Infinity) expect(findUnrung([one], new Map([[one.key, times]]))).toEqual([]);
  });

  test("happens once over speech, and goes on afterwards", () => {
    const alarm = reminder({ kind: "alarm" });
    const rung = new Map([[alarm.key, 1]]);
    expect(chooseRinging([alarm], new Map(), true)).toEqual([alarm]);
    expect(chooseRinging([alarm], rung, true)).toEqual([]);
    expect(chooseRinging([alarm], rung, false)).toEqual([alarm]);
  });
});
