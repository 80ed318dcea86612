/** Where a tool's answer comes from, if its data says so. */

import { linkUrl } from "./urls";

export interface CitedSource {
  title: string;
  url: string;
}

const FIELDS = ["citations", "sources", "results"] as const;
const MOST = 8;

export function findCitations(result: unknown): CitedSource[] {
  if (typeof result !== "object" || result === null) return [];
  const found = new Map<string, CitedSource>();
  for (const field of FIELDS) {
    const list: unknown = (result as Record<string, unknown>)[field];
    if (!Array.isArray(list)) continue;
    for (const each of list as unknown[]) {
      const { title, url: address } = (each ?? {}) as { title?: unknown; url?: unknown };
      const url = linkUrl(address);
      if (url !== null) found.set(url, { url, title: typeof title === "string" && title !== "" ? title : new URL(url).host });
    }
  }
  return [...found.values()].slice(0, MOST);
}
