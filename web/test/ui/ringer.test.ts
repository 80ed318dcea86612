// @vitest-environment happy-dom
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createRinger, type Ringer } from "../../src/ui/ringer";
import type { Reminder } from "../../src/view/state";

let notes: { hz: number; gain: number }[] = [];
let allowed = true;
let contexts: FakeContext[] = [];

class FakeContext {
  state: "suspended" | "running" | "closed" = "suspended";
  currentTime = 0;
  destination = {};
  onstatechange: (() => void) | null = null;
  constructor() {
    contexts.push(this);
  }
  async resume(): Promise<void> {
    if (!allowed || this.state !== "suspended") return;
    this.state = "running";
    this.onstatechange?.();
  }
  async close(): Promise<void> {
    this.state = "closed";
  }
}

class FakeGain {
  highest = 0;
  gain = {
    setValueAtTime: () => undefined,
    linearRampToValueAtTime: (value: number) => void (this.highest = value),
    exponentialRampToValueAtTime: () => undefined,
  };
  connect = () => this;
}

class FakeTone {
  #gain: FakeGain | null = null;
  constructor(_: unknown, private readonly options: { frequency: number }) {}
  connect(gain: FakeGain): FakeGain {
    return (this.#gain = gain);
  }
  start(): void {
    notes.push({ hz: this.options.frequency, gain: this.#gain!.highest });
  }
  stop(): void {}
}

const reminder = (more: Partial<Reminder> = {}): Reminder => ({ key: "r@1", message: "Tea", due: 1, kind: "reminder", missed: false, ...more });
let blocked: boolean[] = [];
let ringer: Ringer;
let overSpeech = false;
let volume = 1;

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("AudioContext", FakeContext);
  vi.stubGlobal("GainNode", FakeGain);
  vi.stubGlobal("OscillatorNode", FakeTone);
  [notes, contexts, blocked, allowed, overSpeech, volume] = [[], [], [], true, false, 1];
  ringer = createRinger({
    volume: () => volume,
    output: () => "",
    isOverSpeech: () => overSpeech,
    blocked: (isBlocked) => blocked.push(isBlocked),
  });
});
afterEach(() => {
  ringer.stop();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const after = (ms: number) => vi.advanceTimersByTimeAsync(ms);

describe("a ring", () => {
  test("of a reminder is heard twice, and then the context is closed", async () => {
    ringer.follow([reminder()]);
    expect(notes).toHaveLength(2);
    await after(60_000);
    expect(notes).toHaveLength(4);
    expect(contexts.map(({ state }) => state)).toEqual(["closed"]);
  });

  test("of a timer is heard until it is dismissed", async () => {
    ringer.follow([reminder({ kind: "timer" })]);
    await after(600_000);
    expect(notes).toHaveLength(201 * 3);
    ringer.follow([]);
    await after(60_000);
    expect(notes).toHaveLength(201 * 3);
    expect(contexts[0]?.state).toBe("closed");
  });

  test("of a missed alarm is heard once", async () => {
    ringer.follow([reminder({ kind: "alarm", missed: true })]);
    await after(60_000);
    expect(notes).toHaveLength(4);
  });

  test("begins softly, and has the volume of the settings", async () => {
    volume = 0.5;
    ringer.follow([reminder({ kind: "alarm" })]);
    await after(60_000);
    expect(notes[0]!.gain).toBeLessThan(notes.at(-1)!.gain);
    expect(notes.at(-1)!.gain).toBeCloseTo(0.15);
  });

  test("is silent at the volume 0", async () => {
    volume = 0;
    ringer.follow([reminder()]);
    await after(60_000);
    expect(notes).toEqual([]);
  });

  test("of several at once is that of the most urgent one", () => {
    ringer.follow([reminder(), reminder({ key: "a@1", kind: "alarm" }), reminder({ key: "t@1", kind: "timer" })]);
    expect(notes.map(({ hz }) => hz)).toEqual([523, 659, 784, 1047]);
  });

  test("goes over speech once, and goes on when that has ended", async () => {
    overSpeech = true;
    ringer.follow([reminder({ kind: "timer" })]);
    await after(30_000);
    expect(notes).toHaveLength(3);
    overSpeech = false;
    await after(3000);
    expect(notes).toHaveLength(6);
  });
});

describe("a browser that blocks sound", () => {
  beforeEach(() => {
    allowed = false;
    ringer.follow([reminder({ kind: "timer" })]);
  });

  test("is reported", async () => {
    await after(1000);
    expect([blocked, notes]).toEqual([[true], []]);
  });

  test("lets it ring once the user interacts, without the rings of the meantime", async () => {
    await after(30_000);
    allowed = true;
    dispatchEvent(new Event("pointerdown"));
    await after(0);
    expect(notes).toHaveLength(3);
    expect(blocked).toEqual([true, false]);
  });

  test("is forgotten when the reminder is dismissed", async () => {
    await after(1000);
    ringer.follow([]);
    expect(blocked).toEqual([true, false]);
  });
});
