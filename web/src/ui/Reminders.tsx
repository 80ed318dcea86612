import { useEffect } from "preact/hooks";
import { formatTime } from "../view/format";
import { usePage, useSelector } from "./hooks";
import { Icon } from "./Icon";

/** The chime has two soft notes. It is synthesised, so that no sound file has to be loaded. */
const NOTES_HZ = [660, 880] as const;
const NOTE_S = 0.45;
const REPEAT_MS = 4000;
const TIMES = 5;

export function Reminders() {
  const page = usePage();
  const reminders = useSelector((state) => state.reminders);
  const newest = reminders.at(-1)?.id;
  useEffect(() => (newest === undefined ? undefined : ring()), [newest]);
  if (reminders.length === 0) return null;
  return (
    <div class="reminders" role="alert">
      {reminders.map(({ id, message, due }) => (
        <div key={id} class="reminder">
          <Icon name="bell" />
          <span>
            <strong>{message}</strong>
            <span class="quiet"> {formatTime(due)}</span>
          </span>
          <button type="button" class="button" onClick={() => page.dispatch({ type: "reminder_dismissed", id })}>
            Dismiss
          </button>
        </div>
      ))}
    </div>
  );
}

/** Rings a few times, or until it is stopped. Browsers keep it silent if the user has not interacted with the page. */
function ring(): () => void {
  if (typeof AudioContext === "undefined") return () => undefined;
  const context = new AudioContext();
  let left = TIMES;
  play(context);
  const timer = setInterval(() => {
    left -= 1;
    if (left > 0) play(context);
    else stop();
  }, REPEAT_MS);
  function stop(): void {
    clearInterval(timer);
    if (context.state !== "closed") void context.close();
  }
  return stop;
}

function play(context: AudioContext): void {
  NOTES_HZ.forEach((hz, index) => {
    const start = context.currentTime + index * NOTE_S * 0.6;
    const tone = new OscillatorNode(context, { frequency: hz });
    const volume = new GainNode(context, { gain: 0 });
    volume.gain.setValueAtTime(0, start);
    volume.gain.linearRampToValueAtTime(0.18, start + 0.02);
    volume.gain.exponentialRampToValueAtTime(0.001, start + NOTE_S);
    tone.connect(volume).connect(context.destination);
    tone.start(start);
    tone.stop(start + NOTE_S);
  });
}
