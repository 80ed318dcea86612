/** State and values as text: the status line, names, times, and the thread as Markdown. */

import type { Citation } from "../client/antiphon";
import { formatClock } from "./clock";
import { type Item, type PageState, TOKEN_NEEDED } from "./state";

/** The colour of a status. */
export type Tone = "calm" | "good" | "busy" | "bad";

export interface Status {
  text: string;
  tone: Tone;
}

/** Whether the connection was lost, an attempt to connect failed, or the server does not answer. */
export function isLost({ connection, isStalled }: PageState): boolean {
  return isStalled || connection.state === "waiting" || connection.state === "closed" || (connection.state === "connecting" && connection.attempt > 0);
}

export function describeConnection({ connection, isStalled, episode, isTokenRefused }: PageState): Status {
  switch (connection.state) {
    case "connecting":
      return { text: connection.attempt > 0 ? "Reconnecting…" : "Connecting…", tone: "busy" };
    case "waiting":
      return { text: "Reconnecting…", tone: "busy" };
    case "closed":
      if (connection.code !== TOKEN_NEEDED) return { text: "Disconnected", tone: "bad" };
      return { text: isTokenRefused ? "Wrong token" : "Token required", tone: "bad" };
    case "open":
      if (isStalled) return { text: "No answer", tone: "busy" };
      if (episode?.step === "restarting") return { text: "Restarting", tone: "busy" };
      return { text: "Connected", tone: "good" };
  }
}

/** Why nobody is heard in a call; null if the user is heard. */
export function describePause(state: PageState): string | null {
  if (!isLost(state)) return null;
  return state.connection.state === "open" ? "Mic paused, the server does not answer" : "Mic paused, reconnecting";
}

export function describeMicrophone(state: PageState): Status {
  const { microphone, hasVoice } = state;
  if (hasVoice === false) return { text: "Text only", tone: "calm" };
  if (microphone.state === "on" && isLost(state)) return { text: "Mic paused", tone: "busy" };
  switch (microphone.state) {
    case "off":
      return { text: "Mic off", tone: "calm" };
    case "asking":
      return { text: "Allow mic?", tone: "busy" };
    case "on":
      return microphone.muted ? { text: "Mic muted", tone: "busy" } : { text: "Mic on", tone: "good" };
    case "failed":
      return { text: microphone.error.code === "denied" ? "Mic blocked" : "No mic", tone: "bad" };
  }
}

export type Activity = "idle" | "listening" | "thinking" | "speaking" | "tool" | "offline";

export function findActivity(state: PageState): Activity {
  const { server, items, playback: heard, microphone } = state;
  // What has already arrived is still played.
  if (isLost(state)) return heard.isPlaying ? "speaking" : "offline";
  if (server === "processing" && items.some((item) => item.kind === "tool" && (item.status === "running" || item.status === "approved"))) return "tool";
  if (server === "processing") return "thinking";
  if (server === "speaking" || heard.isPlaying) return "speaking";
  // The server may be listening although the microphone is closed: nobody can be heard then.
  return server === "idle" || microphone.state !== "on" ? "idle" : "listening";
}

/** Whether there is something to stop. */
export function isBusy(state: PageState): boolean {
  const activity = findActivity(state);
  return activity !== "idle" && activity !== "listening" && activity !== "offline";
}

export function describeAssistant(state: PageState): Status {
  switch (findActivity(state)) {
    case "tool":
      return { text: "Using a tool", tone: "busy" };
    case "thinking":
      return { text: "Thinking", tone: "busy" };
    case "speaking":
      return { text: "Speaking", tone: "good" };
    case "listening":
      return { text: "Listening", tone: "good" };
    case "idle":
      return { text: "Idle", tone: "calm" };
    case "offline":
      return state.talk === "off" ? { text: "Offline", tone: "calm" } : { text: "Call on hold", tone: "busy" };
  }
}

/** "get_weather" becomes "Get weather". */
export function nameTool(name: string): string {
  const words = name.replaceAll(/[_-]+/g, " ").trim();
  return words === "" ? "Tool" : words[0]!.toUpperCase() + words.slice(1);
}

/** What people see of a tool. */
export function titleTool({ title, name }: { title: string | null; name: string }): string {
  return title?.trim() || nameTool(name);
}

export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  return formatCountdown(ms);
}

/** Formats as "0:42" or "1:02:03". */
export function formatCountdown(ms: number): string {
  return formatClock(Math.max(0, Math.ceil(ms / 1000)));
}

/** The time of day, as in "14:05". */
export function formatTime(ms: number): string {
  return new Date(ms).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
}

/** The time of day, with the day unless it is today. */
export function formatMoment(ms: number, now: number): string {
  const date = new Date(ms);
  const isToday = date.toDateString() === new Date(now).toDateString();
  return isToday ? formatTime(ms) : `${date.toLocaleDateString(undefined, { day: "numeric", month: "short" })}, ${formatTime(ms)}`;
}

/** The name of the key with this `KeyboardEvent.code`: "KeyT" becomes "T". */
export function nameKey(code: string): string {
  return code.replace(/^Key|^Digit/, "").replace(/(?<=[a-z])(?=[A-Z])/g, " ");
}

/** A tool's argument or result as text, in one or more lines. */
export function formatValue(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
}

/** The thread as Markdown, to copy or to save. */
export function toMarkdown(items: readonly Item[]): string {
  return `${items.map(writeItem).filter((text) => text !== "").join("\n\n")}\n`;
}

function writeItem(item: Item): string {
  switch (item.kind) {
    case "user":
      return item.status === "interim" ? "" : `**You:** ${item.text}`;
    case "assistant":
      return [`**Antiphon:** ${item.text}${item.status === "interrupted" ? " *(interrupted)*" : ""}`, ...item.citations.map(writeCitation)].join("\n\n");
    case "tool":
      return `${fence(`${titleTool(item)} (${item.status})\n${formatValue(item.args)}\n${formatValue(item.result)}`)}`;
    case "image":
      return `![${item.caption ?? "Picture"}](${item.url})`;
    case "event":
      return `*${item.text}*`;
    case "flyout":
      return "";
  }
}

function writeCitation({ title, url }: Citation, index: number): string {
  return `${index + 1}. ${url ? `[${title}](${url})` : title}`;
}

/** The fence is longer than any in the text, so that the text cannot end it. */
function fence(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const ticks = "`".repeat(longest + 1);
  return `${ticks}\n${text}\n${ticks}`;
}

/** What the page says about recording; empty if there is nothing to say. */
export function describeRecording({ recording }: PageState): string {
  if (recording === null) return "";
  if (recording.active) return "This call is being recorded.";
  if (recording.choice === "always") return "This server records every call.";
  return recording.choice === "on" ? "Calls in this conversation are recorded." : "";
}
