import { useEffect, useRef } from "preact/hooks";
import type { Activity } from "../view/words";
import { usePage } from "./context";

/** Speech has a root mean square of about 0.02 to 0.2: the root spreads it over the scale. */
const GAIN = 1.9;
const RISE = 0.35;
const FALL = 0.12;
const STILL = 0.004;

/** Breathes with the real level. Drawn by transforms of three discs, and only while there is something to show. */
export function Orb({ activity }: { activity: Activity }) {
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
      // A hidden page gets no frames, so it draws none.
      if (frame === 0) frame = requestAnimationFrame(draw);
    }
    const end = page.onLevel(({ input, output, speech }) => {
      // Nobody is heard without a connection.
      const isHeard = page.state.value.connection.state === "open";
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
