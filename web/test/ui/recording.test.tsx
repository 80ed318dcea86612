// @vitest-environment happy-dom
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { CallRecord } from "../../src/view/records";
import { renderApp, type RenderedApp } from "./render";

const CALL: CallRecord = {
  id: "v1",
  conversation_id: "c1",
  started_ms: 1000,
  duration_ms: 62_000,
  summary: "They talked.",
  models: [],
  transcript: [
    { seq: 4, role: "user", content: "What time is it?", spoken: true, at: 1000, calls: [] },
    { seq: 5, role: "assistant", content: "It is noon.", spoken: true, at: 9000, calls: [] },
    { seq: 6, role: "user", content: "Thanks.", spoken: true, at: 63_000, calls: [] },
  ],
  recordings: [
    { id: "r1", started_ms: 1000, duration_ms: 61_000, turns: [{ seq: 4, at_ms: 700 }, { seq: 5, at_ms: 8_900 }] },
    { id: "r2", started_ms: 62_000, duration_ms: null, turns: [{ seq: 6, at_ms: 900 }] },
  ],
};

let app: RenderedApp;
beforeEach(async () => {
  app = await renderApp({ calls: [CALL] });
});
afterEach(() => app.end());

const told = (choice: string, active: boolean) => ({ type: "recording", choice, active }) as const;
const line = () => app.text(".recording");
const buttons = () => [...app.root.querySelectorAll("button")].map((button) => button.textContent!.trim());

test("nothing is said about recording on a server that records nothing", async () => {
  expect(line()).toBe("");
  await act(() => app.page.toggleTalk());
  expect(buttons()).not.toContain("Record");
});

test("a call that is recorded is announced in a live region that was there before", async () => {
  const region = app.root.querySelector(".recording");
  expect(region?.getAttribute("role")).toBe("status");
  await app.receive(told("always", false));
  expect(line()).toBe("This server records every call.");
  await app.receive(told("always", true));
  expect(line()).toBe("This call is being recorded.");
  expect(app.root.querySelector(".recording")).toBe(region);
  await act(() => app.page.toggleTalk());
  expect(buttons()).not.toContain("Record");
});

test("the user turns recording on and off in a call", async () => {
  await app.receive(told("off", false));
  expect(line()).toBe("");
  await act(() => app.page.toggleTalk());
  const button = () => app.root.querySelector<HTMLButtonElement>(".call-controls .icon-record")!.closest("button")!;
  expect(button().getAttribute("aria-pressed")).toBe("false");
  await act(() => button().click());
  expect(app.client().calls.at(-1)).toBe("record true");
  await app.receive(told("on", true));
  expect(line()).toBe("This call is being recorded.");
  expect(button().getAttribute("aria-pressed")).toBe("true");
  await act(() => button().click());
  expect(app.client().calls.at(-1)).toBe("record false");
});

test("a new session is not recorded until the server says so, and a resumed one is as before", async () => {
  const session = { type: "session", session_id: "s", conversation_id: "c", energy: null } as const;
  await app.receive(told("on", false), { ...session, resumed: true });
  expect(line()).toBe("Calls in this conversation are recorded.");
  await app.receive({ ...session, resumed: false });
  expect(line()).toBe("");
});

test("the history plays a recording that is complete", async () => {
  await app.click('[aria-label="Conversations and calls"]');
  await act(async () => undefined);
  const players = () => [...app.root.querySelectorAll("button")].filter((each) => each.textContent!.startsWith("Play the recording"));
  expect(players()).toHaveLength(1);
  await act(async () => players()[0]!.click());
  const audio = app.root.querySelector("audio");
  expect(audio?.getAttribute("src")).toBe("blob:r1");
  expect(audio?.controls).toBe(true);
  expect(audio?.getAttribute("aria-label")).toContain("The recording of");
});

test("a turn of the transcript is played from its place, and paused", async () => {
  await app.click('[aria-label="Conversations and calls"]');
  await act(async () => undefined);
  const places = () => [...app.root.querySelectorAll<HTMLElement>(".play-from")];
  expect(places().map((each) => each.textContent)).toEqual(["Play from 0:00", "Play from 0:08"]);
  await act(async () => places()[1]!.click());
  const audio = app.root.querySelector("audio")!;
  Object.defineProperty(audio, "readyState", { value: 1 });
  await act(async () => void audio.dispatchEvent(new Event("loadedmetadata")));
  expect([audio.currentTime, audio.paused]).toEqual([8.9, false]);
  await act(async () => void audio.dispatchEvent(new Event("play")));
  expect(places()[1]!.textContent).toBe("Pause");
  await act(async () => places()[0]!.click());
  expect(app.root.querySelector("audio")).toBe(audio);
  expect(audio.currentTime).toBe(0.7);
  await act(async () => places()[0]!.click());
  expect(audio.paused).toBe(true);
});
