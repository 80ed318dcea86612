/** The server's HTTP API: conversations, calls, models, voices and the knowledge base. */

import type { HistoryTurn, Mode } from "../client/antiphon";
import { createKnowledge, type Knowledge } from "./knowledge";

export interface ConversationEntry {
  id: string;
  title: string;
  created_ms: number;
  updated_ms: number;
}

export interface CallRecord {
  id: string;
  conversation_id: string;
  started_ms: number;
  duration_ms: number | null;
  summary: string;
  models: string[];
  /** The levels of energy that the call went through, the first one first. */
  energy_path?: number[];
  transcript: CallTurn[];
  recordings?: RecordingEntry[];
}

export interface CallTurn extends HistoryTurn {
  /** The number of the turn in its conversation. */
  seq: number;
}

/** A recording of a call, or of a part of it. */
export interface RecordingEntry {
  id: string;
  started_ms: number;
  /** Null while it is being made. */
  duration_ms: number | null;
  /** Where turns begin in it. */
  turns: { seq: number; at_ms: number }[];
}

/** What the server writes in the place of a summary that it could not make. */
const UNAVAILABLE = /^summary unavailable\.?$/i;

/** Returns null if the call has no summary. */
export function summaryOf({ summary }: CallRecord): string | null {
  const text = summary.trim();
  return text === "" || UNAVAILABLE.test(text) ? null : text;
}

/** How long after a call its summary may still come. */
const SUMMARY_MS = 30_000;

/** Whether the call ended so recently that its summary may still be written. */
export function isBeingSummarized({ summary, started_ms, duration_ms }: CallRecord, now: number): boolean {
  return summary === "" && duration_ms !== null && now - (started_ms + duration_ms) < SUMMARY_MS;
}

export interface VoiceEntry {
  id: string;
  name: string;
  language: string;
  current: boolean;
}

export interface ModelEntry {
  name: string;
  mode: Mode;
}

/** The models of one mode, by level. */
export interface LadderReport {
  mode: Mode;
  max: number;
  /** The level that a new call or conversation begins with. */
  best: number;
  rungs: { level: number; model: string; /** For how long it is not used. */ cooling_s: number }[];
}

/** The levels of a session, and the model of the mode that it is in. */
export interface SessionReport {
  session_id: string;
  mode: Mode;
  voice: number | null;
  text: number | null;
  model: string | null;
}

export interface EnergyReport {
  ladders: LadderReport[];
  sessions: SessionReport[];
}

export interface Records {
  conversations(before?: string): Promise<{ conversations: ConversationEntry[]; next: string | null }>;
  deleteConversation(id: string): Promise<void>;
  calls(): Promise<CallRecord[]>;
  clearCalls(): Promise<void>;
  /** Returns an address at which an audio element can play a recording. */
  recording(conversation: string, recording: string): Promise<string>;
  voices(): Promise<VoiceEntry[]>;
  models(): Promise<ModelEntry[]>;
  energy(): Promise<EnergyReport>;
  /** Gives the session a new connection to its model. The conversation is kept. */
  renewModel(sessionId: string): Promise<void>;
  readonly knowledge: Knowledge;
}

const UNREACHABLE = "The server cannot be reached. Try again once the page is connected.";

export function createRecords(base: string, token: () => string | null): Records {
  async function send(method: "GET" | "DELETE" | "POST", path: string, given?: unknown): Promise<Response> {
    const bearer = token();
    const headers: Record<string, string> = {
      ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
      ...(given === undefined ? {} : { "content-type": "application/json" }),
    };
    const sent = given === undefined ? {} : { body: JSON.stringify(given) };
    const response = await fetch(new URL(path, base), { method, headers, ...sent }).catch(() => null);
    if (response === null) throw new Error(UNREACHABLE);
    if (response.ok) return response;
    throw new Error(readError(await response.json().catch(() => null)) ?? `The request failed (status ${response.status}).`);
  }

  async function request(method: "GET" | "DELETE" | "POST", path: string, given?: unknown): Promise<unknown> {
    const response = await send(method, path, given);
    return response.status === 204 ? null : response.json().catch(() => null);
  }

  const id = encodeURIComponent;
  return {
    async conversations(before) {
      const more = before === undefined ? "" : `&before=${id(before)}`;
      const body = await request("GET", `api/conversations?limit=50${more}`);
      const { conversations, next } = (body ?? {}) as { conversations?: ConversationEntry[]; next?: string | null };
      return { conversations: conversations ?? [], next: next ?? null };
    },
    async deleteConversation(which) {
      await request("DELETE", `api/conversations/${id(which)}`);
    },
    async calls() {
      return ((await request("GET", "api/calls")) as { calls?: CallRecord[] } | null)?.calls ?? [];
    },
    async clearCalls() {
      await request("DELETE", "api/calls");
    },
    async recording(conversation, recording) {
      const path = `api/conversations/${id(conversation)}/recordings/${id(recording)}`;
      // An audio element cannot show a token. Without one it can ask for the parts that it needs.
      if (token() === null) return new URL(path, base).href;
      return URL.createObjectURL(await (await send("GET", path)).blob());
    },
    async models() {
      return ((await request("GET", "api/models")) as { models?: ModelEntry[] } | null)?.models ?? [];
    },
    async energy() {
      const { ladders, sessions } = ((await request("GET", "api/energy")) ?? {}) as Partial<EnergyReport>;
      return { ladders: ladders ?? [], sessions: sessions ?? [] };
    },
    async renewModel(sessionId) {
      await request("POST", `api/sessions/${id(sessionId)}/renew`);
    },
    knowledge: createKnowledge(request),
    async voices() {
      return ((await request("GET", "api/voices")) as { voices?: VoiceEntry[] } | null)?.voices ?? [];
    },
  };
}

function readError(body: unknown): string | null {
  const { error, message = error?.message } = (body ?? {}) as { error?: { message?: unknown }; message?: unknown };
  return typeof message === "string" ? message : null;
}
