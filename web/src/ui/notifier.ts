/** Has the system show reminders while the page is not in view. The user must have allowed it in the settings. */

import { describeReminder } from "../view/reminders";
import type { Reminder } from "../view/state";

export interface Notifier {
  /** Takes over the reminders that are shown now: new ones are shown by the system, and dismissed ones withdrawn. */
  follow(reminders: readonly Reminder[]): void;
  stop(): void;
}

export function createNotifier(isWanted: () => boolean): Notifier {
  const known = new Map<string, Notification | null>();

  function show(reminder: Reminder): Notification | null {
    if (!isWanted() || !canNotify() || Notification.permission !== "granted" || document.hasFocus()) return null;
    try {
      const { key: tag, kind, missed } = reminder;
      const requireInteraction = kind !== "reminder" && !missed;
      const shown = new Notification(describeReminder(reminder), { body: reminder.message, tag, requireInteraction });
      shown.onclick = () => {
        window.focus();
        shown.close();
      };
      return shown;
    } catch {
      // Chrome for Android only allows it to service workers.
      return null;
    }
  }

  return {
    follow(reminders) {
      const keys = new Set(reminders.map(({ key }) => key));
      for (const [key, shown] of known) {
        if (keys.has(key)) continue;
        shown?.close();
        known.delete(key);
      }
      for (const reminder of reminders) if (!known.has(reminder.key)) known.set(reminder.key, show(reminder));
    },
    stop() {
      for (const shown of known.values()) shown?.close();
      known.clear();
    },
  };
}

/** Pages that are not served over HTTPS cannot ask. */
export function canNotify(): boolean {
  return typeof Notification !== "undefined" && isSecureContext;
}

/** Asks for the user's permission, which browsers allow only in answer to a click or a key press. */
export async function allowNotifications(): Promise<boolean> {
  if (!canNotify()) return false;
  return (await Notification.requestPermission()) === "granted";
}
