import { useEffect, useRef } from "preact/hooks";
import { formatMoment } from "../view/format";
import { describeReminder, isOverSpeech } from "../view/reminders";
import type { Reminder } from "../view/state";
import { COMPOSER_ID } from "./Composer";
import { usePage, useSelector } from "./hooks";
import { Icon } from "./Icon";
import { createNotifier } from "./notifier";
import { createRinger } from "./ringer";

/** How often the title of the window changes while something is due. */
const FLASH_MS = 1000;
const SILENT = "Your browser blocks sound until you click or press a key on this page.";

/** What is due, and how to dismiss it. It is shown in dialogs too, since they make the rest of the page inert. */
export function Reminders() {
  const page = usePage();
  const reminders = useSelector((state) => state.reminders);
  const isBlocked = useSelector((state) => state.isRingBlocked);
  const box = useRef<HTMLDivElement>(null);

  function dismiss(dismissed: readonly Reminder[]): void {
    for (const { key } of dismissed) page.dispatch({ type: "reminder_dismissed", key });
    // The button that had the focus is gone.
    requestAnimationFrame(() => {
      if (document.activeElement !== document.body) return;
      const dialog = box.current?.closest("dialog");
      const next = box.current?.querySelector("button") ?? dialog?.querySelector("button") ?? document.getElementById(COMPOSER_ID);
      next?.focus();
    });
  }

  return (
    <div ref={box} class="reminders" role="alert" aria-atomic="false">
      {reminders.map((reminder) => (
        <div key={reminder.key} class="reminder" data-missed={reminder.missed}>
          <Icon name={reminder.kind === "reminder" ? "bell" : "clock"} />
          <span>
            <span class="quiet">{describeReminder(reminder)} </span>
            <strong>{reminder.message}</strong>
            <time class="quiet" dateTime={new Date(reminder.due).toISOString()}> {formatMoment(reminder.due, page.now())}</time>
          </span>
          <button type="button" class="button" onClick={() => dismiss([reminder])}>
            Dismiss<span class="visually-hidden"> “{reminder.message}”</span>
          </button>
        </div>
      ))}
      {reminders.length > 0 && isBlocked && <p class="reminders-note quiet">{SILENT}</p>}
      {reminders.length > 1 && (
        <button type="button" class="button reminders-all" onClick={() => dismiss(reminders)}>Dismiss all</button>
      )}
    </div>
  );
}

/** Rings for what is due, says it in the title of the window, and has the system show it. It draws nothing. */
export function Ringer() {
  const page = usePage();
  const reminders = useSelector((state) => state.reminders);
  const { reducedMotion } = page.settings.value;
  const ringer = useRef<ReturnType<typeof createRinger> | null>(null);
  const notifier = useRef<ReturnType<typeof createNotifier> | null>(null);

  useEffect(() => {
    ringer.current = createRinger({
      volume: () => page.settings.value.volume / 100,
      output: () => page.settings.value.output,
      isOverSpeech: () => isOverSpeech(page.state.value),
      blocked: (isBlocked) => page.dispatch({ type: "ring_blocked", isBlocked }),
    });
    notifier.current = createNotifier(() => page.settings.value.notifications);
    return () => {
      ringer.current?.stop();
      notifier.current?.stop();
    };
  }, []);
  useEffect(() => {
    ringer.current?.follow(reminders);
    notifier.current?.follow(reminders);
  }, [reminders]);

  const newest = reminders.findLast(({ missed }) => !missed);
  const alert = newest === undefined ? null : `${describeReminder(newest)}: ${newest.message}`;
  useEffect(() => (alert === null ? undefined : flashTitle(alert, reducedMotion)), [alert, reducedMotion]);
  return null;
}

/** Returns a function that restores the title. */
function flashTitle(text: string, isStill: boolean): () => void {
  const before = document.title;
  document.title = text;
  const timer = isStill ? undefined : setInterval(() => (document.title = document.title === text ? before : text), FLASH_MS);
  return () => {
    clearInterval(timer);
    document.title = before;
  };
}
