/**
 * Decides which speech is played, and reports progress to the server. There is no audio here: pieces in, pieces and
 * messages out.
 */

import type { Playing } from "./events";
import type { Player } from "./player";
import type { Piece, Progress } from "./playout";
import type { ClientMessage, State } from "./wire";

/** The server accepts at most four reports a second. */
const REPORT_MS = 250;
/** How long playback is held at most. The server decides sooner, unless the connection is lost. */
const HOLD_LIMIT_MS = 4000;
/** The turn number of a voice sample, which belongs to no answer. */
const VOICE_SAMPLE = 0;

export interface Playback {
  readonly now: Playing;
  /** Takes a piece of speech from the server. */
  receive(seq: number, piece: Piece): void;
  /** The server sends no more speech of this turn. */
  complete(turn: number): void;
  /** Reports from the player. */
  position(at: Progress): void;
  ended(at: Progress): void;
  /** Stops at once. Returns how much of the answer was played; null if none was playing. */
  stop(): { turn: number; playedMs: number } | null;
  /** Like `stop`, and discards what still arrives until the server has changed its state. */
  interrupt(): { turn: number; playedMs: number } | null;
  duck(ducked: boolean): void;
  /** Stops at once, but keeps what is left, until `resume` or `stop`. */
  hold(): void;
  resume(): void;
  followState(state: State): void;
  /** A new session started, which counts its turns from 1 again. */
  reset(): void;
}

export function createPlayback(
  player: Pick<Player, "push" | "flush" | "duck" | "hold">,
  send: (message: ClientMessage) => void,
  changed: (now: Playing) => void,
  clock: () => number = () => performance.now(),
): Playback {
  let now: Playing = {
    playing: false,
    turn: VOICE_SAMPLE,
    playedMs: 0,
    receivedMs: 0,
    complete: false,
    ducked: false,
    held: false,
  };
  let holdTimer: ReturnType<typeof setTimeout> | undefined;
  /** The newest turn that has speech, and its newest piece. */
  let newest = { turn: VOICE_SAMPLE, seq: -1 };
  /** How much speech has arrived, by turn: for the one that is playing and those queued behind it. */
  const received = new Map<number, number>();
  /** The turn of the newest piece, including voice samples. */
  let lastTurn = VOICE_SAMPLE;
  /** This turn and earlier ones must not be played any more. */
  let stoppedTurn = 0;
  let isDiscarding = false;
  let completeTurn = 0;
  /** The turn of which everything that has arrived was played. */
  let endedTurn = 0;
  let reportedAt = -Infinity;

  function change(next: Partial<Playing>): void {
    now = { ...now, ...next };
    now.receivedMs = received.get(now.turn) ?? 0;
    now.complete = now.turn !== VOICE_SAMPLE && now.turn <= completeTurn;
    changed(now);
  }

  function countReceived({ turn, hz, samples }: Piece): void {
    received.set(turn, (received.get(turn) ?? 0) + (samples.length * 1000) / hz);
    for (const known of received.keys()) if (known < Math.min(turn, now.turn)) received.delete(known);
  }

  /** Late reports about stopped playback are ignored. */
  function isStopped(turn: number): boolean {
    return !now.playing || (turn !== VOICE_SAMPLE && turn <= stoppedTurn);
  }

  function report(turn: number, playedMs: number): void {
    if (turn === VOICE_SAMPLE || clock() - reportedAt < REPORT_MS) return;
    reportedAt = clock();
    send({ type: "playback", turn, played_ms: Math.round(playedMs) });
  }

  function reportDone(turn: number): void {
    if (turn !== VOICE_SAMPLE && turn === endedTurn && turn <= completeTurn) send({ type: "playback_done", turn });
  }

  function stop(): { turn: number; playedMs: number } | null {
    const { turn } = newest;
    const wasHeard = now.playing && turn !== VOICE_SAMPLE;
    // If a newer answer is queued behind the one that is playing, none of it was played yet.
    const heard = wasHeard ? { turn, playedMs: now.turn === turn ? Math.round(now.playedMs) : 0 } : null;
    stoppedTurn = Math.max(stoppedTurn, turn);
    player.flush();
    if (now.ducked) player.duck(false);
    release();
    if (now.playing || now.ducked || now.held) change({ playing: false, ducked: false, held: false });
    return heard;
  }

  function release(): void {
    clearTimeout(holdTimer);
    if (now.held) player.hold(false);
  }

  function resume(): void {
    release();
    if (now.held) change({ held: false });
  }

  return {
    get now() {
      return now;
    },
    receive(seq, piece) {
      const { turn } = piece;
      if (turn !== VOICE_SAMPLE) {
        if (isDiscarding) stoppedTurn = Math.max(stoppedTurn, turn);
        if (turn <= stoppedTurn) return;
        if (turn === newest.turn && seq <= newest.seq) {
          // The answer is generated again after a server was lost, and replaces what is left of the old one.
          player.flush();
          received.delete(turn);
          change({ playedMs: 0 });
        }
        newest = { turn, seq };
        endedTurn = 0;
        countReceived(piece);
      }
      lastTurn = turn;
      player.push(piece);
      if (!now.playing) change({ playing: true, turn, playedMs: 0 });
    },
    complete(turn) {
      completeTurn = Math.max(completeTurn, turn);
      if (turn === now.turn) change({});
      reportDone(turn);
    },
    position({ turn, playedMs }) {
      if (isStopped(turn)) return;
      const isNews = turn !== now.turn || clock() - reportedAt >= REPORT_MS;
      now = { ...now, turn, playedMs };
      report(turn, playedMs);
      if (isNews) change({});
    },
    ended({ turn, playedMs }) {
      if (isStopped(turn)) return;
      report(turn, playedMs);
      change({ turn, playedMs, playing: turn !== lastTurn });
      if (turn !== VOICE_SAMPLE) endedTurn = turn;
      reportDone(turn);
    },
    stop,
    interrupt() {
      isDiscarding = true;
      return stop();
    },
    duck(ducked) {
      if (ducked === now.ducked) return;
      player.duck(ducked);
      change({ ducked });
    },
    hold() {
      if (!now.playing || now.held) return;
      player.hold(true);
      // Nothing sounds that would have to be turned down.
      if (now.ducked) player.duck(false);
      holdTimer = setTimeout(resume, HOLD_LIMIT_MS);
      change({ held: true, ducked: false });
    },
    resume,
    followState(state) {
      if (state === "interrupted") stop();
      // Everything sent before the server knew of the interruption has arrived by now.
      if (state !== "speaking" && state !== "processing") isDiscarding = false;
    },
    reset() {
      stop();
      newest = { turn: VOICE_SAMPLE, seq: -1 };
      stoppedTurn = completeTurn = endedTurn = 0;
      received.clear();
      isDiscarding = false;
    },
  };
}
