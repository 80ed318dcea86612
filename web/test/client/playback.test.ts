import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import type { Playing } from "../../src/client/events";
import { createPlayback, type Playback } from "../../src/client/playback";
import type { ClientMessage } from "../../src/client/wire";

let sent: ClientMessage[];
let done: string[];
let events: Playing[];
let nowMs: number;
let playback: Playback;

beforeEach(() => {
  sent = [];
  done = [];
  events = [];
  nowMs = 0;
  const player = {
    push: (piece: { turn: number }) => done.push(`push ${piece.turn}`),
    flush: () => done.push("flush"),
    duck: (ducked: boolean) => done.push(ducked ? "duck" : "unduck"),
    hold: (held: boolean) => done.push(held ? "hold" : "go on"),
  };
  playback = createPlayback(player, (message) => sent.push(message), (now) => events.push(now), () => nowMs);
});

const piece = (turn: number) => ({ turn, hz: 22_050, samples: new Int16Array(1) });
const at = (turn: number, playedMs: number) => ({ turn, playedMs });

function play(turn: number, playedMs: number): void {
  playback.receive(0, piece(turn));
  playback.position(at(turn, playedMs));
  sent.length = done.length = 0;
}

describe("reports to the server", () => {
  test("say how much was played, at most four times a second", () => {
    playback.receive(0, piece(1));
    for (nowMs = 0; nowMs < 1000; nowMs += 33) playback.position(at(1, nowMs + 0.4));
    expect(sent).toEqual([0, 264, 528, 792].map((ms) => ({ type: "playback", turn: 1, played_ms: ms })));
  });

  test("say that an answer was played, once it is complete and its last sample was played", () => {
    play(1, 100);
    playback.complete(1);
    expect(sent).toEqual([]);
    playback.ended(at(1, 200));
    expect(sent).toEqual([{ type: "playback_done", turn: 1 }]);
    expect(playback.now.playing).toBe(false);
  });

  test("say that an answer was played, even if it is only later known to be complete", () => {
    play(1, 100);
    playback.ended(at(1, 200));
    expect(sent).toEqual([]);
    playback.complete(1);
    expect(sent).toEqual([{ type: "playback_done", turn: 1 }]);
  });

  test("do not say that an answer was played while more of it is to come", () => {
    play(1, 100);
    playback.ended(at(1, 200));
    playback.receive(1, piece(1));
    playback.complete(1);
    expect(sent).toEqual([]);
  });

  test("say it again if more arrived after it seemed complete", () => {
    play(1, 100);
    playback.complete(1);
    playback.ended(at(1, 200));
    playback.receive(1, piece(1));
    playback.ended(at(1, 400));
    expect(sent.filter((each) => each.type === "playback_done")).toHaveLength(2);
  });

  test("leave out voice samples", () => {
    play(0, 100);
    nowMs = 1000;
    playback.position(at(0, 900));
    playback.ended(at(0, 950));
    expect(sent).toEqual([]);
    expect(playback.now.playing).toBe(false);
  });
});

describe("an interruption", () => {
  test("stops playback at once and returns how much was played", () => {
    play(3, 1234.4);
    expect(playback.interrupt()).toEqual({ turn: 3, playedMs: 1234 });
    expect(done).toEqual(["flush"]);
    expect(playback.now.playing).toBe(false);
  });

  test("discards what still arrives of the answer", () => {
    play(3, 100);
    playback.interrupt();
    playback.receive(1, piece(3));
    playback.ended(at(3, 100));
    playback.position(at(3, 120));
    expect([done, sent]).toEqual([["flush"], []]);
  });

  test("discards an answer of which nothing has arrived yet", () => {
    playback.interrupt();
    playback.receive(0, piece(3));
    playback.followState("interrupted");
    playback.receive(1, piece(3));
    expect(done).not.toContain("push 3");
  });

  test("does not affect the next answer", () => {
    play(3, 100);
    playback.interrupt();
    playback.followState("interrupted");
    playback.followState("listening");
    playback.receive(0, piece(4));
    expect(done.at(-1)).toBe("push 4");
  });

  test("does not affect voice samples", () => {
    play(3, 100);
    playback.interrupt();
    playback.receive(0, piece(0));
    expect(done.at(-1)).toBe("push 0");
  });

  test("by the server stops playback too", () => {
    play(3, 100);
    playback.followState("interrupted");
    expect(done).toEqual(["flush"]);
  });

  test("returns null if nothing plays", () => {
    expect(playback.interrupt()).toBeNull();
  });

  test("of an answer that is queued behind another one has played none of it", () => {
    play(3, 500);
    playback.receive(0, piece(4));
    expect(playback.interrupt()).toEqual({ turn: 4, playedMs: 0 });
  });
});

describe("the amount of speech received", () => {
  const second = (turn: number) => ({ turn, hz: 1000, samples: new Int16Array(1000) });

  test("is counted by the samples of the turn that have arrived", () => {
    playback.receive(0, second(1));
    playback.receive(1, second(1));
    playback.ended(at(1, 2000));
    expect(events.at(-1)).toMatchObject({ turn: 1, playedMs: 2000, receivedMs: 2000, complete: false });
  });

  test("is complete once the server says so", () => {
    playback.receive(0, second(1));
    playback.complete(1);
    expect(events.at(-1)).toMatchObject({ receivedMs: 1000, complete: true });
  });

  test("is reported when an answer is stopped", () => {
    playback.receive(0, second(1));
    playback.position(at(1, 300));
    playback.receive(1, second(1));
    playback.complete(1);
    playback.interrupt();
    expect(events.at(-1)).toMatchObject({ playing: false, playedMs: 300, receivedMs: 2000, complete: true });
  });

  test("is counted separately for an answer that is queued behind the one that is playing", () => {
    playback.receive(0, second(1));
    playback.receive(0, second(2));
    playback.receive(1, second(2));
    playback.ended(at(1, 1000));
    expect(events.at(-1)).toMatchObject({ turn: 1, receivedMs: 1000 });
    playback.position(at(2, 100));
    expect(events.at(-1)).toMatchObject({ turn: 2, receivedMs: 2000 });
  });

  test("starts from 0 for an answer that is generated again, and in another session", () => {
    playback.receive(0, second(1));
    playback.receive(0, second(1));
    expect(playback.now.receivedMs).toBe(0);
    playback.ended(at(1, 1000));
    expect(playback.now.receivedMs).toBe(1000);
    playback.reset();
    playback.receive(0, second(1));
    expect(playback.now.receivedMs).toBe(1000);
  });
});

test("an answer that is generated again replaces the old one", () => {
  play(3, 500);
  playback.receive(1, piece(3));
  playback.receive(0, piece(3));
  expect(done).toEqual(["push 3", "flush", "push 3"]);
  expect(playback.now).toMatchObject({ playing: true, turn: 3, playedMs: 0 });
});

test("the turns of another session are played although their numbers were used before", () => {
  play(9, 500);
  playback.reset();
  playback.receive(0, piece(1));
  expect(done).toEqual(["flush", "push 1"]);
});

test("ducking ends when playback is stopped", () => {
  play(1, 100);
  playback.duck(true);
  playback.duck(true);
  playback.stop();
  expect(done).toEqual(["duck", "flush", "unduck"]);
  expect(events.at(-1)).toMatchObject({ playing: false, ducked: false });
});

describe("a hold", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test("stops playback and keeps what is left, until it goes on", () => {
    play(1, 100);
    playback.hold();
    expect([done, playback.now]).toMatchObject([["hold"], { playing: true, held: true }]);
    playback.receive(1, piece(1));
    playback.resume();
    expect([done, playback.now]).toMatchObject([["hold", "push 1", "go on"], { playing: true, held: false }]);
    expect(sent).toEqual([]);
  });

  test("ends with the interruption that drops the answer", () => {
    play(1, 100);
    playback.hold();
    playback.followState("interrupted");
    expect([done, playback.now]).toMatchObject([["hold", "flush", "go on"], { playing: false, held: false }]);
  });

  test("ends by itself if the server says no more", () => {
    play(1, 100);
    playback.hold();
    vi.advanceTimersByTime(3999);
    expect(playback.now.held).toBe(true);
    vi.advanceTimersByTime(1);
    expect([done, playback.now.held]).toEqual([["hold", "go on"], false]);
  });

  test("ends the ducking, since there is nothing to turn down", () => {
    play(1, 100);
    playback.duck(true);
    playback.hold();
    expect([done, playback.now.ducked]).toEqual([["duck", "hold", "unduck"], false]);
  });

  test("of nothing changes nothing", () => {
    playback.hold();
    playback.resume();
    expect(done).toEqual([]);
  });
});
