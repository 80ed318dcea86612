/** Keyboard shortcuts of the page. Input fields and open dialogs take precedence. */

import type { Page } from "../view/page";
import { COMPOSER_ID } from "./Composer";

const TYPING = "input:not([type=checkbox], [type=radio], [type=range]), textarea, select, [contenteditable]";
/** Elements on which Space has its own meaning. */
const PRESSABLE = "button, a[href], summary, input, [role=separator]";

/** Returns a function that removes the listeners. */
export function listenToKeys(page: Page, showKeys: () => void): () => void {
  let isHeld = false;

  function down(event: KeyboardEvent): void {
    const target = event.target instanceof Element ? event.target : document.body;
    if (document.querySelector("dialog[open]") !== null || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      escape(event);
      return;
    }
    if (target.closest(TYPING) !== null) return;
    const { talkKey } = page.settings.value;
    if (event.code === talkKey) {
      if (talkKey === "Space" && target.closest(PRESSABLE) !== null) return;
      event.preventDefault();
      if (event.repeat || isHeld || page.state.value.block !== null) return;
      isHeld = true;
      page.press();
    } else if (event.key === "/") {
      event.preventDefault();
      document.getElementById(COMPOSER_ID)?.focus();
    } else if (event.key === "?") {
      showKeys();
    } else if (event.key.toLowerCase() === "m" && !event.repeat) {
      page.toggleMute();
    }
  }

  function escape(event: KeyboardEvent): void {
    event.preventDefault();
    const due = page.state.value.reminders.at(-1);
    if (due !== undefined) page.dispatch({ type: "reminder_dismissed", key: due.key });
    else if (page.state.value.openFlyout !== null) page.dispatch({ type: "flyout_closed" });
    else page.interrupt();
  }

  function up(event: KeyboardEvent): void {
    if (isHeld && event.code === page.settings.value.talkKey) release();
  }

  /** A window that loses the focus gets no keyup event. */
  function release(): void {
    if (isHeld) page.release();
    isHeld = false;
  }

  addEventListener("keydown", down);
  addEventListener("keyup", up);
  addEventListener("blur", release);
  return () => {
    release();
    removeEventListener("keydown", down);
    removeEventListener("keyup", up);
    removeEventListener("blur", release);
  };
}
