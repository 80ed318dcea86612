/** The recordings of calls as both pages play them: one at a time, from any turn on. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { formatClock } from "../view/clock";

export interface Place {
  recording: string;
  /** Milliseconds from the beginning of the recording. */
  at_ms: number;
}

interface State {
  /** From where it was last asked to play; null if nothing is to be heard. */
  place: Place | null;
  /** The address of the sound; null until it is loaded. */
  source: string | null;
  isPlaying: boolean;
  /** Why it cannot be heard; empty if it can. */
  problem: string;
}

export interface Sound extends Omit<State, "source"> {
  play(place: Place): void;
  pause(): void;
  /** What plays it, while something is to be heard. */
  player: ComponentChildren;
}

const SILENT: State = { place: null, source: null, isPlaying: false, problem: "" };

/** `load` returns an address for an audio element. It is called when the recording is first wanted. */
export function useSound(load: (recording: string) => Promise<string>, label: string): Sound {
  const [state, setState] = useState(SILENT);
  const { place, source } = state;
  const audio = useRef<HTMLAudioElement>(null);
  const request = useRef(0);
  useEffect(() => () => {
    request.current++;
  }, []);
  useEffect(() => () => release(source), [source]);

  function start(from: Place): void {
    if (audio.current === null || audio.current.readyState === 0) return;
    audio.current.currentTime = from.at_ms / 1000;
    // A browser may not allow it so long after the click. The player is there.
    audio.current.play().catch(() => undefined);
  }

  function play(from: Place): void {
    if (place?.recording === from.recording) {
      setState((before) => ({ ...before, place: from }));
      start(from);
      return;
    }
    const number = ++request.current;
    setState({ ...SILENT, place: from });
    load(from.recording).then(
      (address) => {
        if (number === request.current) setState((before) => ({ ...before, source: address }));
        else release(address);
      },
      (error: Error) => number === request.current && setState({ ...SILENT, problem: error.message }),
    );
  }

  const player = place === null ? null : source === null ? (
    <p class="quiet" role="status">Loading the recording…</p>
  ) : (
    <audio
      ref={audio}
      class="recording-player"
      controls
      src={source}
      aria-label={label}
      onLoadedMetadata={() => start(place)}
      onPlay={() => setState((before) => ({ ...before, isPlaying: true }))}
      onPause={() => setState((before) => ({ ...before, isPlaying: false }))}
      onError={() => setState({ ...SILENT, problem: "This recording cannot be played. It may have been deleted." })}
    />
  );
  return { ...state, play, pause: () => audio.current?.pause(), player };
}

/** Plays a recording from a turn on, and pauses it. */
export function PlayFrom({ sound, place }: { sound: Sound; place: Place }) {
  const isHere = sound.isPlaying && sound.place?.recording === place.recording && sound.place.at_ms === place.at_ms;
  return (
    <button type="button" class="play-from" onClick={() => (isHere ? sound.pause() : sound.play(place))}>
      {isHere ? "Pause" : `Play from ${formatClock(Math.floor(place.at_ms / 1000))}`}
    </button>
  );
}

function release(address: string | null): void {
  if (address?.startsWith("blob:")) URL.revokeObjectURL(address);
}
