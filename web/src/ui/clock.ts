import { useEffect, useState } from "preact/hooks";
import { usePage } from "./context";

const TICK_MS = 250;

/** Milliseconds until then, drawn again as they pass; 0 when it is over. */
export function useCountdown(until: number, whenOver: () => void): number {
  const page = usePage();
  const [left, setLeft] = useState(() => Math.max(0, until - page.now()));
  useEffect(() => {
    const tick = () => {
      const next = Math.max(0, until - page.now());
      setLeft(next);
      if (next === 0) {
        clearInterval(timer);
        whenOver();
      }
    };
    const timer = setInterval(tick, TICK_MS);
    tick();
    return () => clearInterval(timer);
  }, [until]);
  return left;
}
