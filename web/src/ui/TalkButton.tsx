import { useRef } from "preact/hooks";
import { findActivity } from "../view/words";
import { usePage, usePart } from "./context";
import { Orb } from "./Orb";

/** Longer than a click takes. */
const HOLD_MS = 280;

/** A click begins a hands-free call, and silences the assistant in one; holding it is push-to-talk. */
export function TalkButton({ size }: { size: "large" | "small" }) {
  const page = usePage();
  const talk = usePart((state) => state.talk);
  const activity = usePart(findActivity);
  const isBlocked = usePart((state) => state.block !== null);
  const hold = useRef({ timer: 0, isHeld: false, wasHeld: false });

  function down(): void {
    const now = hold.current;
    now.wasHeld = false;
    if (now.timer !== 0 || isBlocked) return;
    now.timer = window.setTimeout(() => {
      now.isHeld = true;
      page.press();
    }, HOLD_MS);
  }
  function up(): void {
    const now = hold.current;
    clearTimeout(now.timer);
    now.timer = 0;
    if (!now.isHeld) return;
    now.isHeld = false;
    // The click that follows belongs to the holding.
    now.wasHeld = true;
    page.release();
  }
  function click(): void {
    if (hold.current.wasHeld) hold.current.wasHeld = false;
    else if (isOn) page.interrupt();
    else page.toggleTalk();
  }

  const isOn = talk === "hands_free";
  return (
    <button
      type="button"
      class={`talk talk-${size}`}
      data-talk={talk}
      aria-pressed={isOn}
      aria-label={isOn ? "In a call. Press to interrupt" : "Start a hands-free call, or hold to talk"}
      title={isOn ? "Click to interrupt" : "Click to start a call, or hold to talk"}
      disabled={isBlocked}
      onPointerDown={(event) => {
        if (event.button === 0) down();
      }}
      onPointerUp={up}
      onPointerLeave={up}
      onPointerCancel={up}
      onContextMenu={(event) => event.preventDefault()}
      onKeyDown={(event) => {
        if (event.key === " " && !event.repeat) down();
      }}
      onKeyUp={(event) => {
        if (event.key === " ") up();
      }}
      onBlur={up}
      onClick={click}
    >
      <Orb activity={activity} />
    </button>
  );
}
