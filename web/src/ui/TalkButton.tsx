import { useEffect, useRef } from "preact/hooks";
import { type Activity, findActivity, isLost } from "../view/format";
import { usePage, useSelector } from "./hooks";

/** Pressing for longer than this is holding, not clicking. */
const HOLD_MS = 280;
/** Speech has a root mean square of about 0.02 to 0.2. Its square root, times this, fills the scale. */
const GAIN = 1.9;
const RISE = 0.35;
const FALL = 0.12;
const STILL = 0.004;

/** A click starts a hands-free call, or interrupts the assistant during one. Holding is push-to-talk. */
export function TalkButton({ size }: { size: "large" | "small" }) {
  const page = usePage();
  const talk = useSelector((state) => state.talk);
  const activity = useSelector(findActivity);
  const isBlocked = useSelector((state) => state.block !== null);
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
    // The click event that follows is part of holding.
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

/**
 * Pulses with the real audio level. It animates transforms of three discs, and only while there is something to show.
 */
function Orb({ activity }: { activity: Activity }) {
  const page = usePage();
  const root = useRef<HTMLSpanElement>(null);

  useEffect(() => {
    let goal = 0;
    let shown = 0;
    let frame = 0;

    function draw(): void {
      frame = 0;
      shown += (goal - shown) * (goal > shown ? RISE : FALL);
      if (goal === 0 && shown < STILL) shown = 0;
      root.current?.style.setProperty("--level", shown.toFixed(3));
      if (shown > 0 || goal > 0) wake();
    }
    function wake(): void {
      // A hidden page gets no animation frames.
      if (frame === 0) frame = requestAnimationFrame(draw);
    }
    const end = page.onLevel(({ input, output, speech }) => {
      // Without a connection the user is not heard.
      const isHeard = !isLost(page.state.value);
      if (root.current !== null) root.current.dataset["speech"] = String(isHeard && speech);
      goal = Math.min(1, Math.sqrt(Math.max(isHeard ? input : 0, output)) * GAIN);
      if (goal < 0.05) goal = 0;
      if (goal > 0 || shown > 0) wake();
    });
    return () => {
      end();
      cancelAnimationFrame(frame);
    };
  }, [page]);

  return (
    <span ref={root} class="orb" data-activity={activity} aria-hidden="true">
      <span class="orb-halo" />
      <span class="orb-ring" />
      <span class="orb-core" />
    </span>
  );
}
