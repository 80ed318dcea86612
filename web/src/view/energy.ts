/** Energy: how good the models in use are, in words. */

import type { EnergyLevels, EnergyMessage, EnergyReason, Mode } from "../client/antiphon";
import { EXHAUSTED } from "../client/events";
import type { EnergyReport, LadderReport } from "./records";
import type { Energy, PageState } from "./state";

/** The highest levels of a server that names only its current ones. */
const MAX_LEVELS: Readonly<Record<Mode, number>> = { voice: 3, text: 2 };
const REASONS: Readonly<Record<EnergyReason, string | null>> = {
  "rate-limit-exceeded": "rate-limited",
  "session-reset": null,
  manual: "set by the operator",
};
/** When the server chooses the best model again. */
const RENEWED: Readonly<Record<Mode, string>> = { voice: "better again with your next call", text: "better again in a new conversation" };

export function applyEnergy(state: PageState, message: EnergyMessage, now: number): PageState {
  const { mode, level, max, model, reason, again_in_s: againInS } = message;
  const betterAt = typeof againInS === "number" ? now + againInS * 1000 : null;
  const next = withEnergy(state, mode, { level, max: max || MAX_LEVELS[mode], model, reason, betterAt });
  // There is a model again: the line that said otherwise is no longer true.
  const isOver = state.episode?.code === EXHAUSTED && level > 0 && findExhausted(next) === null;
  return isOver ? { ...next, episode: null } : next;
}

/** The session message has the levels alone. What else is known stays true for as long as the level is the same. */
export function applyLevels(state: PageState, levels: EnergyLevels | null): PageState {
  if (!levels) return state;
  const fill = (mode: Mode): Energy => {
    const known = state.energy[mode];
    if (known?.level === levels[mode]) return known;
    return { level: levels[mode], max: Math.max(levels[mode], known?.max ?? MAX_LEVELS[mode]), model: null, reason: null, betterAt: null };
  };
  return { ...state, energy: { voice: fill("voice"), text: fill("text") } };
}

/** The server's report says which models there are, and which of them wait. Messages say why a level was changed. */
export function applyReport(state: PageState, { ladders, sessions }: EnergyReport, now: number): PageState {
  const session = sessions.find(({ session_id }) => session_id === state.sessionId);
  const fill = (next: PageState, { mode, max, best, rungs }: LadderReport): PageState => {
    const known = state.energy[mode];
    const level = session?.[mode] ?? known?.level ?? best;
    const waits = rungs.filter((rung) => rung.level > level && rung.cooling_s > 0).map((rung) => rung.cooling_s);
    const model = session?.mode === mode ? session.model : (rungs.find((rung) => rung.level === level)?.model ?? null);
    const reason = (known?.level === level ? known.reason : null) ?? (waits.length > 0 ? "rate-limit-exceeded" : null);
    const betterAt = waits.length > 0 ? now + Math.min(...waits) * 1000 : (known?.betterAt ?? null);
    return withEnergy(next, mode, { level, max, model, reason, betterAt });
  };
  return ladders.reduce(fill, state);
}

function withEnergy(state: PageState, mode: Mode, energy: Energy): PageState {
  return { ...state, energy: { ...state.energy, [mode]: energy } };
}

/**
 * The pool to warn about: the one in use, if it is low, or else the other one, for as long as it has to recover. None while
 * the line says the same.
 */
export function findLow({ energy, talk, episode }: PageState, now: number): Mode | null {
  if (episode?.code === EXHAUSTED) return null;
  const [used, other]: [Mode, Mode] = talk === "off" ? ["text", "voice"] : ["voice", "text"];
  if (isLow(energy[used])) return used;
  const rest = energy[other];
  if (!isLow(rest)) return null;
  // Without a model and without a known end of that, there is nothing to wait for.
  const isWaiting = rest.betterAt === null ? rest.level === 0 : rest.betterAt > now;
  return isWaiting ? other : null;
}

/** A level that no `energy` message has explained may be all that this server has. */
function isLow(energy: Energy | null): energy is Energy {
  return energy !== null && energy.level < energy.max && energy.reason !== null;
}

/** Finds the pool that has no model, the one in use first. */
export function findExhausted({ energy, talk }: PageState): Mode | null {
  const pools: Mode[] = talk === "off" ? ["text", "voice"] : ["voice", "text"];
  return pools.find((mode) => energy[mode]?.level === 0) ?? null;
}

/** Returns the sentence about a pool without a model, and without the time to wait. */
export function describeExhausted(mode: Mode): string {
  return mode === "voice" ? "No model can answer by voice right now." : "No model can answer right now.";
}

/** For example "2 of 3, rate-limited". */
export function describeLevel({ level, max, reason }: Energy): string {
  const why = reason !== null && level < max ? REASONS[reason] : null;
  return `${level} of ${max}${why ? `, ${why}` : ""}`;
}

/** Describes when there is a better model: "back in 40 s", "Try again in 40 s.", or nothing if that is not known. */
export function describeWait(mode: Mode, { level, max }: Energy, leftS: number | null): string {
  if (leftS === null || level >= max) return "";
  if (level === 0) return leftS > 0 ? `Try again in ${formatWait(leftS)}.` : "You can try again now.";
  return leftS > 0 ? `back in ${formatWait(leftS)}` : RENEWED[mode];
}

function formatWait(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.ceil(minutes / 60)} h`;
}
