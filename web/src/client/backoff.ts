/** How long to wait before the next try: longer each time, and for each client a little different. */

const FIRST_MS = 500;
const LONGEST_MS = 30_000;

/** A connection that held this long was a good one, so the next loss starts from the shortest wait again. */
export const STEADY_MS = 10_000;

/** Before the `attempt`th try, which counts from 1: between the half and the whole of what doubles each time. */
export function retryDelayMs(attempt: number, random: () => number): number {
  const wholeMs = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(attempt - 1, 32));
  // The clients of a server that restarts must not all come back in the same moment.
  return wholeMs * (0.5 + 0.5 * random());
}
