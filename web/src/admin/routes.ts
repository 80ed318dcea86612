/** Which view is open. It is in the hash of the address, so that it can be linked to and gone back to. */

export const VIEWS = {
  sessions: "Sessions",
  conversations: "Conversations",
  audit: "Audit",
  users: "Users",
  tokens: "Tokens",
  energy: "Energy",
  tools: "Tools",
  knowledge: "Knowledge base",
} as const;
export type ViewName = keyof typeof VIEWS;

export interface Route {
  view: ViewName;
  /** The conversation whose timeline is open. */
  id: string | null;
  parameters: Record<string, string>;
}

export function readRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [name = "", id = ""] = path.split("/", 2);
  const view = Object.hasOwn(VIEWS, name) ? (name as ViewName) : "sessions";
  return { view, id: id === "" ? null : decode(id), parameters: Object.fromEntries(new URLSearchParams(query)) };
}

/** Anybody may have written the address. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function linkTo(view: ViewName, id?: string | null, parameters: Record<string, string | undefined> = {}): string {
  const given = Object.entries(parameters).filter((each): each is [string, string] => each[1] !== undefined && each[1] !== "");
  const query = given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
  return `#/${view}${id ? `/${encodeURIComponent(id)}` : ""}${query}`;
}
