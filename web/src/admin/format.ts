/** Values as text. Times are in the viewer's zone. */

import type { AuditLine, EnergyChange, Latency, Rung, SessionEntry, ToolRun } from "./api";

/** The colour of a badge. */
export type Tone = "calm" | "good" | "busy" | "bad";

export interface Badge {
  text: string;
  tone: Tone;
}

/** The time of day, with the day if that is not today. */
export function formatTime(at: number, now: number): string {
  const date = new Date(at);
  const time = date.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  if (date.toDateString() === new Date(now).toDateString()) return time;
  const isThisYear = date.getFullYear() === new Date(now).getFullYear();
  const day = date.toLocaleDateString(undefined, { day: "numeric", month: "short", ...(isThisYear ? {} : { year: "numeric" }) });
  return `${day}, ${time}`;
}

export function formatFullTime(at: number): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" });
}

export function formatMs(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "";
  if (ms < 10) return `${Number(ms.toFixed(1))} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${Number((ms / 1000).toFixed(1))} s` : formatDuration(ms);
}

export function formatDuration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60), seconds % 60];
  return [hours > 0 ? `${hours} h` : "", minutes > 0 ? `${minutes} min` : "", rest > 0 || seconds === 0 ? `${rest} s` : ""].filter((part) => part).join(" ");
}

/** An id that people can tell apart at a glance. */
export function shortId(id: string): string {
  return id.length > 10 ? id.slice(0, 8) : id;
}

export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString()} ${number === 1 ? one : many}`;
}

export function describeSession({ connected, held, stored }: Pick<SessionEntry, "connected" | "held" | "stored">): Badge {
  if (connected === true) return stored ? { text: "Connected", tone: "good" } : { text: "Connected, silent", tone: "good" };
  if (connected === null) return { text: "On another node", tone: "calm" };
  return held ? { text: "Parked", tone: "busy" } : { text: "Stored", tone: "calm" };
}

/** The outcome of a call through the gate. */
export function describeOutcome({ outcome, ok }: { outcome?: string | null | undefined; ok?: boolean | null | undefined }): Badge {
  const text = outcome ?? (ok === null || ok === undefined ? "unknown" : ok ? "ok" : "failed");
  if (text === "ok") return { text, tone: "good" };
  if (text === "CONFIRMATION_REQUIRED") return { text: "asked first", tone: "busy" };
  return { text: text.replaceAll("_", " ").toLowerCase(), tone: text === "event" || text === "unknown" ? "calm" : "bad" };
}

const APPROVALS: Readonly<Record<string, string>> = {
  requested: "approval requested", approved: "approved by the user", denied: "denied by the user", expired: "approval expired",
};

/** What else is known about a call, in a few words. */
export function describeRun(run: Pick<ToolRun, "confirmation" | "cache_hit" | "event"> | Pick<AuditLine, "confirmation" | "cache_hit" | "event">): string {
  return [
    run.event && run.event !== "confirmation" ? run.event.replaceAll("_", " ") : "",
    run.confirmation ? (APPROVALS[run.confirmation] ?? run.confirmation) : "",
    run.cache_hit ? "repeated delivery" : "",
  ].filter((part) => part).join(" · ");
}

export interface Stage {
  name: string;
  ms: number;
}

/** The parts of the wait for an answer, in their order. Recognition overlaps with the others and is left out. */
export function stagesOf({ end_of_turn_ms, first_token_ms, first_audio_ms }: Latency): Stage[] {
  const stages: [string, number | null | undefined][] = [
    ["end of turn", end_of_turn_ms],
    ["first word", first_token_ms],
    ["first sound", first_audio_ms],
  ];
  return stages.flatMap(([name, ms]) => (ms === null || ms === undefined ? [] : [{ name, ms }]));
}

const REASONS: Readonly<Record<string, string>> = {
  manual: "set by hand", "rate-limit-exceeded": "rate limit exceeded", "session-reset": "a new call or conversation",
};

export function describeEnergy({ mode, level, previous, max, reason, model }: EnergyChange): string {
  const direction = level < previous ? "lowered" : level > previous ? "raised" : "kept";
  const by = REASONS[reason] ?? reason;
  return `Energy of ${mode} ${direction} from ${previous} to ${level} of ${max} (${by})${model ? `: ${model}` : ""}`;
}

export function describeRung({ cooling_s, reachable }: Rung): Badge {
  if (cooling_s > 0) return { text: `Rate-limited, ${Math.ceil(cooling_s)} s`, tone: "busy" };
  return reachable ? { text: "Ready", tone: "good" } : { text: "Not reachable", tone: "bad" };
}

/** Whether any of the texts has every word of the filter. */
export function matches(filter: string, ...texts: (string | null | undefined)[]): boolean {
  const where = texts.join(" ").toLowerCase();
  return filter.toLowerCase().split(/\s+/).every((word) => where.includes(word));
}

/** The value of a `datetime-local` field as Unix time in milliseconds; empty if it is not a time. */
export function toMs(local: string): string {
  const at = new Date(local).getTime();
  return local === "" || Number.isNaN(at) ? "" : String(at);
}

/** Unix time in milliseconds as the value of a `datetime-local` field. */
export function toLocal(ms: string | undefined): string {
  const at = Number(ms);
  if (ms === undefined || ms === "" || !Number.isFinite(at)) return "";
  return new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
