import { useEffect } from "preact/hooks";
import { ring } from "./chime";
import { usePage, usePart } from "./context";
import { Icon } from "./Icon";

export function Reminders() {
  const page = usePage();
  const reminders = usePart((state) => state.reminders);
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
            <span class="quiet"> {new Date(due).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" })}</span>
          </span>
          <button type="button" class="button" onClick={() => page.dispatch({ type: "reminder_dismissed", id })}>
            Dismiss
          </button>
        </div>
      ))}
    </div>
  );
}
