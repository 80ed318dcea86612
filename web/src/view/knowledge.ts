/** The knowledge base: its HTTP API, and how records are shown and entered. */

export interface RecordHit {
  id: string;
  namespace: string;
  type: string;
  title: string;
  snippet: string;
  /** From 0 to 1; null if there was no query. */
  score: number | null;
  tags: string[];
  url: string | null;
  /** In ISO 8601. */
  last_updated: string;
}

export interface KnowledgeRecord extends Omit<RecordHit, "snippet" | "score"> {
  /** Markdown, or plain text. */
  body: string;
  source_type: string;
  /** Whether the user may delete it. */
  writable?: boolean;
}

/** The types and namespaces of records, as people call them. */
export const TYPES: Readonly<Record<string, string>> = {
  doc: "Document", person: "Person", project: "Project", process: "Process", link: "Link",
};
export const NAMESPACES: Readonly<Record<string, string>> = { personal: "Only me", studio: "Everybody here", public: "Public" };

export interface NewRecord {
  title: string;
  body: string;
  type: string;
  namespace: string;
  tags?: string[];
  url?: string;
}

export interface RecordSearch {
  query: string;
  tag: string | null;
  limit: number;
}

export interface FoundRecords {
  results: RecordHit[];
  /** How many records there are with this tag, whatever the query. */
  total: number;
}

export interface Knowledge {
  /** Without a query the newest records are found. */
  search(search: RecordSearch): Promise<FoundRecords>;
  read(id: string): Promise<KnowledgeRecord>;
  add(record: NewRecord): Promise<KnowledgeRecord>;
  remove(id: string): Promise<void>;
}

type Request = (method: "GET" | "DELETE" | "POST", path: string, body?: unknown) => Promise<unknown>;

export function createKnowledge(request: Request): Knowledge {
  const pathOf = (id: string) => `api/kb/${encodeURIComponent(id)}`;
  return {
    async search({ query, tag, limit }) {
      const parameters = new URLSearchParams({ limit: String(limit) });
      if (query.trim() !== "") parameters.set("query", query.trim());
      if (tag !== null) parameters.set("tag", tag);
      const { results = [], total = results.length } = ((await request("GET", `api/kb?${parameters}`)) ?? {}) as Partial<FoundRecords>;
      return { results, total };
    },
    read: async (id) => (await request("GET", pathOf(id))) as KnowledgeRecord,
    add: async (record) => (await request("POST", "api/kb", record)) as KnowledgeRecord,
    async remove(id) {
      await request("DELETE", pathOf(id));
    },
  };
}

/** A record that is being written, as its fields are. */
export interface RecordDraft {
  title: string;
  body: string;
  type: string;
  tags: string;
  namespace: string;
  url: string;
}

export const EMPTY_DRAFT: RecordDraft = { title: "", body: "", type: "doc", tags: "", namespace: "personal", url: "" };

/** Optional fields that were left empty are omitted. */
export function toRecord({ title, body, type, namespace, tags: listed, url }: RecordDraft): NewRecord {
  const tags = splitTags(listed);
  return {
    title: title.trim(),
    body: body.trim(),
    type,
    namespace,
    ...(tags.length > 0 ? { tags } : {}),
    ...(url.trim() === "" ? {} : { url: url.trim() }),
  };
}

export function splitTags(text: string): string[] {
  return [...new Set(text.split(",").map((tag) => tag.trim()).filter((tag) => tag !== ""))];
}

export interface Span {
  text: string;
  isHit: boolean;
}

/** Too common to be worth marking. */
const COMMON: ReadonlySet<string> = new Set("the and for are was how who what when where which does did with our you".split(" "));
const ENDINGS = /(?<=\p{L}{3})(?:ing|ed|es|s)$/u;

/** Splits a text so that the words of a query can be marked in it. Other forms of a word count too. */
export function markHits(text: string, query: string): Span[] {
  const words = (query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).filter((word) => word.length > 1 && !COMMON.has(word));
  if (words.length === 0) return [{ text, isHit: false }];
  const stems = words.map((word) => word.replace(ENDINGS, ""));
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])((?:${stems.join("|")})[\\p{L}\\p{N}]*)`, "giu");
  // Split by a group, every second piece is a match.
  return text.split(pattern).map((piece, index) => ({ text: piece, isHit: index % 2 === 1 })).filter((span) => span.text !== "");
}

/** The day of a record, as in "4 May 2031"; empty if it is not known. */
export function formatDate(moment: string): string {
  const date = new Date(moment);
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleDateString(undefined, { day: "numeric", month: "short", year: "numeric" });
}

/** What is known about a record besides its text, in one line. */
export function describeRecord({ type, namespace, last_updated }: Pick<RecordHit, "type" | "namespace" | "last_updated">): string {
  return [TYPES[type] ?? type, NAMESPACES[namespace] ?? namespace, formatDate(last_updated)].filter((part) => part).join(" · ");
}
