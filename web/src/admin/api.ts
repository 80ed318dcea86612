/** `/api/admin` of the server, and the part of `/api/kb` that the operator's page uses. */

import type { Place } from "../ui/sound";

export interface Status {
  user: string;
  node: string;
  version: string;
  tools_version: string;
  sessions: number;
  connected: number;
}

export interface SessionEntry {
  id: string;
  user: string;
  conversation_id: string;
  mode: string;
  node: string;
  held: boolean;
  /** Null if another process has the session. */
  connected: boolean | null;
  /** False before the first turn. */
  stored: boolean;
  updated_ms: number;
  resumable_until_ms: number | null;
  model: string | null;
}

export interface ConversationEntry {
  id: string;
  user: string;
  title: string;
  created_ms: number;
  updated_ms: number;
}

interface Said {
  kind: "said";
  at_ms: number;
  seq: number;
  role: string;
  text: string;
  spoken: boolean;
  /** Where it can be heard; null if it was not recorded. */
  place?: Place | null;
}

export interface ToolRun {
  kind: "tool";
  at_ms: number;
  tool: string;
  args?: unknown;
  result?: unknown;
  ok?: boolean | null;
  outcome?: string | null;
  duration_ms?: number | null;
  confirmation?: string | null;
  cache_hit?: boolean;
  event?: string | null;
  tool_version?: string | null;
}

export interface Latency {
  kind: "latency";
  at_ms: number;
  end_of_turn_ms?: number | null;
  stt_ms?: number | null;
  first_token_ms?: number | null;
  first_audio_ms?: number | null;
  total_ms?: number | null;
}

export interface EnergyChange {
  kind: "energy";
  at_ms: number;
  mode: string;
  level: number;
  previous: number;
  max: number;
  reason: string;
  model?: string | null;
}

interface Upstream {
  kind: "upstream";
  at_ms: number;
  code: string;
  text: string;
}

export interface CallStart {
  kind: "call";
  at_ms: number;
  id: string;
  duration_ms: number | null;
  models: string[];
  energy_path: number[];
  summary: string;
  recordings: { id: string; started_ms: number; /** Null until it is complete. */ duration_ms: number | null }[];
}

export type TimelineEntry = Said | ToolRun | Latency | EnergyChange | Upstream | CallStart;

export interface Timeline {
  conversation: ConversationEntry;
  entries: TimelineEntry[];
  earlier: string | null;
}

export interface AuditLine {
  ts_ms: number;
  session: string;
  user: string;
  mode: string;
  turn: number;
  tool: string;
  tool_version?: string;
  outcome?: string;
  duration_ms?: number;
  confirmation?: string;
  cache_hit?: boolean;
  event?: string;
  conversation?: string;
  /** Only if the server keeps them. */
  args?: unknown;
  clamped?: unknown;
  data?: unknown;
}

export interface AuditEntry {
  number: number;
  line: AuditLine;
}

export interface UserEntry {
  user: string;
  conversations: number;
  updated_ms: number | null;
  tokens: number;
  sessions: number;
  block: { until_ms: number; reason: string } | null;
}

export interface TokenEntry {
  id: string;
  user: string;
  name: string;
  is_admin: boolean;
  created_ms: number;
  expires_ms: number | null;
  is_expired: boolean;
  is_current: boolean;
}

export interface Rung {
  level: number;
  model: string;
  resumable: boolean;
  fallback: boolean;
  cooling_s: number;
  reachable: boolean;
}

export interface Ladder {
  mode: string;
  max: number;
  best: number;
  rungs: Rung[];
}

export interface SessionEnergy {
  session_id: string;
  user: string;
  conversation_id: string;
  mode: string;
  connected: boolean;
  text: number | null;
  voice: number | null;
  model: string | null;
  node: string;
}

export interface EnergyState {
  ladders: Ladder[];
  sessions: SessionEnergy[];
  /** Nodes that do not answer: their sessions are not among these. */
  unreached: string[];
}

export interface LoadedTool {
  id: string;
  version: string;
  category: string;
  from_files: boolean;
  calls: number;
  errors: number;
  average_ms: number;
}

export interface LoadedTools {
  version: string;
  built_version: string;
  locked: boolean;
  tools: LoadedTool[];
}

export interface ToolChanges {
  running: string;
  on_disk: string;
  tools: { tool: string; kind: string; changes: { field: string; breaking: boolean; sentence: string }[] }[];
  problems: string[];
}

export interface KnowledgeCounts {
  namespaces: { namespace: string; records: number }[];
  records: number;
  passages: number;
  vectors: number;
  embedder: string;
}

export interface KnowledgeHit {
  id: string;
  namespace: string;
  type: string;
  title: string;
  snippet: string;
  score: number | null;
  last_updated: string;
}

export interface Page<T> {
  rows: T[];
  next: string | null;
}

export const AUDIT_FIELDS = ["user", "tool", "outcome", "session", "conversation"] as const;
export type AuditSearch = Partial<Record<(typeof AUDIT_FIELDS)[number] | "since" | "until", string>>;

/** Why a request failed. Its status is 0 if the server cannot be reached. */
export class RequestError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }

  /** Whether another token is needed. */
  get isRefused(): boolean {
    return this.status === 401 || this.status === 403;
  }
}

export interface Api {
  status(): Promise<Status>;
  sessions(user: string, before: string | null): Promise<Page<SessionEntry>>;
  conversations(user: string, before: string | null): Promise<Page<ConversationEntry>>;
  timeline(id: string, before: string | null): Promise<Timeline>;
  /** Returns the sound of a recording. Each time is audited. */
  recording(conversation: string, recording: string): Promise<Blob>;
  audit(search: AuditSearch, before: string | null): Promise<Page<AuditEntry>>;
  users(): Promise<{ users: UserEntry[]; more: boolean }>;
  unblock(user: string): Promise<void>;
  tokens(): Promise<TokenEntry[]>;
  revoke(id: string): Promise<void>;
  energy(): Promise<EnergyState>;
  tools(): Promise<LoadedTools>;
  toolChanges(): Promise<ToolChanges>;
  knowledge(): Promise<KnowledgeCounts>;
  findRecords(query: string): Promise<{ results: KnowledgeHit[]; total: number }>;
}

export const UNREACHABLE = "The server cannot be reached.";
const PAGE_SIZE = "100";

export function createApi(base: string, token: string): Api {
  async function send(method: "GET" | "DELETE", path: string, parameters: Record<string, string | null> = {}): Promise<Response> {
    const url = new URL(path, base);
    for (const [name, value] of Object.entries(parameters)) if (value !== null && value !== "") url.searchParams.set(name, value);
    const response = await fetch(url, { method, headers: { authorization: `Bearer ${token}` } }).catch(() => null);
    if (response === null) throw new RequestError(0, UNREACHABLE);
    if (response.ok) return response;
    throw new RequestError(response.status, readMessage(await readBody(response)) ?? `The request failed (status ${response.status}).`);
  }
  const request = async (...asked: Parameters<typeof send>) => readBody(await send(...asked));
  const get = async <T>(path: string, parameters?: Record<string, string | null>) => (await request("GET", `api/admin/${path}`, parameters)) as T;
  const id = encodeURIComponent;
  return {
    status: () => get("status"),
    async sessions(user, before) {
      const { sessions, next } = await get<{ sessions: SessionEntry[]; next: string | null }>("sessions", { user, before, limit: PAGE_SIZE });
      return { rows: sessions, next };
    },
    async conversations(user, before) {
      const { conversations, next } = await get<{ conversations: ConversationEntry[]; next: string | null }>("conversations", { user, before, limit: PAGE_SIZE });
      return { rows: conversations, next };
    },
    timeline: (which, before) => get(`conversations/${id(which)}`, { before }),
    async recording(conversation, recording) {
      const response = await send("GET", `api/admin/conversations/${id(conversation)}/recordings/${id(recording)}`);
      return response.blob().catch(() => Promise.reject(new RequestError(0, UNREACHABLE)));
    },
    async audit(search, before) {
      const { lines, next } = await get<{ lines: AuditEntry[]; next: number | null }>("audit", { ...search, before, limit: PAGE_SIZE });
      return { rows: lines, next: next === null ? null : String(next) };
    },
    users: () => get("users"),
    async unblock(user) {
      await request("DELETE", "api/admin/blocks", { user });
    },
    async tokens() {
      return (await get<{ tokens: TokenEntry[] }>("tokens")).tokens;
    },
    async revoke(which) {
      await request("DELETE", `api/admin/tokens/${id(which)}`);
    },
    energy: () => get("energy"),
    tools: () => get("tools"),
    toolChanges: () => get("tools/changes"),
    knowledge: () => get("kb"),
    findRecords: async (query) => (await request("GET", "api/kb", { query })) as { results: KnowledgeHit[]; total: number },
  };
}

async function readBody(response: Response): Promise<unknown> {
  return response.status === 204 ? null : response.json().catch(() => null);
}

function readMessage(body: unknown): string | null {
  const message = (body as { error?: { message?: unknown } } | null)?.error?.message;
  return typeof message === "string" ? message : null;
}
