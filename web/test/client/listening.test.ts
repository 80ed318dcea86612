import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { createListening, type Listening } from "../../src/client/listening";
import type { Microphone } from "../../src/client/microphone";
import type { ClientMessage } from "../../src/client/wire";

let sent: string[];
let isOpen: boolean;
let permit: () => void;
let refuse: (error: Error) => void;
let listening: Listening;

beforeEach(() => {
  vi.useFakeTimers();
  sent = [];
  isOpen = false;
  const microphone: Microphone = {
    get isOpen() {
      return isOpen;
    },
    open: () =>
      isOpen
        ? Promise.resolve()
        : new Promise((resolve, reject) => {
            refuse = reject;
            permit = () => {
              isOpen = true;
              resolve();
            };
          }),
    close: () => void (isOpen = false),
    mute: () => undefined,
    choose: () => Promise.resolve(),
  };
  listening = createListening(microphone, (message: ClientMessage) => sent.push(message.type));
});

afterEach(() => vi.useRealTimers());

async function press(): Promise<void> {
  const started = listening.start({ type: "start_listening" });
  permit?.();
  await started;
}

test("the server hears of a call once the microphone is open", async () => {
  const started = listening.start({ type: "start_voice" });
  expect([sent, listening.isOn]).toEqual([[], false]);
  permit();
  await started;
  expect([sent, listening.isOn]).toEqual([["start_voice"], true]);
});

test("a refused microphone is reported to the caller, and not to the server", async () => {
  const started = listening.start({ type: "start_voice" });
  refuse(new Error("no"));
  await expect(started).rejects.toThrow("no");
  expect([sent, listening.isOn]).toEqual([[], false]);
});

test("the end of the last word is still sent after the key is released", async () => {
  await press();
  listening.stop();
  expect(listening.isOn).toBe(true);
  vi.advanceTimersByTime(100);
  expect([sent, listening.isOn]).toEqual([["start_listening", "stop_listening"], false]);
});

test("a key that is pressed again at once does not end the turn", async () => {
  await press();
  listening.stop();
  vi.advanceTimersByTime(50);
  await press();
  vi.advanceTimersByTime(5000);
  expect([sent, listening.isOn]).toEqual([["start_listening"], true]);
});

test("pressing twice while the browser asks for permission starts listening once", async () => {
  const first = listening.start({ type: "start_listening" });
  const permitFirst = permit;
  const second = listening.start({ type: "start_listening" });
  permit();
  permitFirst();
  await Promise.all([first, second]);
  expect(sent).toEqual(["start_listening"]);
});

test("the microphone stays open for the next press, but not forever", async () => {
  await press();
  listening.stop();
  vi.advanceTimersByTime(10_000);
  expect(isOpen).toBe(true);
  vi.advanceTimersByTime(100);
  expect(isOpen).toBe(false);
});

test("a key that is released before the microphone is open sends nothing, and the microphone is closed again", async () => {
  const started = listening.start({ type: "start_listening" });
  listening.stop();
  permit();
  await started;
  expect([sent, listening.isOn]).toEqual([[], false]);
  vi.advanceTimersByTime(10_000);
  expect(isOpen).toBe(false);
});

test("a call that ends before the microphone is open sends nothing", async () => {
  const started = listening.start({ type: "start_voice" });
  listening.end();
  permit();
  isOpen = false;
  await started;
  expect([sent, listening.isOn]).toEqual([[], false]);
});

test("a microphone that is lost while listening is reported once", async () => {
  await press();
  listening.microphoneLost();
  listening.microphoneLost();
  expect([sent, listening.isOn, listening.isOff]).toEqual([["start_listening", "stop_listening"], false, true]);
});

test("listening is neither on nor off while the browser asks for permission", async () => {
  expect(listening.isOff).toBe(true);
  const started = listening.start({ type: "start_listening" });
  expect([listening.isOn, listening.isOff]).toEqual([false, false]);
  permit();
  await started;
  listening.stop();
  expect(listening.isOff).toBe(false);
  vi.advanceTimersByTime(100);
  expect(listening.isOff).toBe(true);
});

test("ending closes the microphone at once", async () => {
  await press();
  listening.end();
  expect([isOpen, listening.isOn]).toEqual([false, false]);
});
