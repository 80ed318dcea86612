/** Which URLs from a model or a tool may become a link, a frame or a picture. */

const LINKS: ReadonlySet<string> = new Set(["http:", "https:", "mailto:"]);
const PAGES: ReadonlySet<string> = new Set(["http:", "https:"]);
const IMAGES = "images/";
const RASTER = /^data:image\/(?:png|jpeg|gif|webp);base64,[a-z0-9+/=]+$/i;

export function linkUrl(text: unknown): string | null {
  return absolute(text, LINKS);
}

export function frameUrl(text: unknown): string | null {
  return absolute(text, PAGES);
}

/**
 * Pictures come from this server's folder for them, or from anywhere over HTTPS, as the page's content security policy
 * allows. SVG data URLs are refused: SVG is a document, not just a picture.
 */
export function imageUrl(text: unknown, base: string): string | null {
  if (typeof text !== "string") return null;
  if (RASTER.test(text)) return text;
  // The server may be mounted below a prefix, which the paths in its messages do not have.
  const here = new URL(".", base);
  const path = text.startsWith(`/${IMAGES}`) ? text.slice(1) : text;
  if (!URL.canParse(path, here)) return null;
  const url = new URL(path, here);
  if (url.origin === here.origin) return url.pathname.startsWith(here.pathname + IMAGES) ? url.href : null;
  return url.protocol === "https:" ? url.href : null;
}

/** Whether the browser can save it by a link: pages of other origins are opened instead. */
export function isSavable(url: string, base: string): boolean {
  return RASTER.test(url) || new URL(url, base).origin === new URL(base).origin;
}

function absolute(text: unknown, schemes: ReadonlySet<string>): string | null {
  if (typeof text !== "string" || !URL.canParse(text.trim())) return null;
  const url = new URL(text.trim());
  return schemes.has(url.protocol) ? url.href : null;
}

interface CitedSource {
  title: string;
  url: string;
}

const CITATION_FIELDS = ["citations", "sources", "results"] as const;
const MAX_CITATIONS = 8;

/** The sources of a tool's result, if its data names them. */
export function findCitations(result: unknown): CitedSource[] {
  if (typeof result !== "object" || result === null) return [];
  const found = new Map<string, CitedSource>();
  for (const field of CITATION_FIELDS) {
    const list: unknown = (result as Record<string, unknown>)[field];
    if (!Array.isArray(list)) continue;
    for (const each of list as unknown[]) {
      const { title, url: address } = (each ?? {}) as { title?: unknown; url?: unknown };
      const url = linkUrl(address);
      if (url !== null) found.set(url, { url, title: typeof title === "string" && title !== "" ? title : new URL(url).host });
    }
  }
  return [...found.values()].slice(0, MAX_CITATIONS);
}
