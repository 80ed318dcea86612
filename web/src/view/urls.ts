/** Which addresses that come from a model or a tool may become a link, a frame or a picture. */

const LINKS: ReadonlySet<string> = new Set(["http:", "https:", "mailto:"]);
const PAGES: ReadonlySet<string> = new Set(["http:", "https:"]);
const RASTER = /^data:image\/(?:png|jpeg|gif|webp);base64,[a-z0-9+/=]+$/i;

export function linkUrl(text: unknown): string | null {
  return absolute(text, LINKS);
}

export function frameUrl(text: unknown): string | null {
  return absolute(text, PAGES);
}

/** Pictures may also be the server's own. SVG as data is left out: it is a document, not a picture. */
export function imageUrl(text: unknown, base: string): string | null {
  if (typeof text !== "string") return null;
  if (RASTER.test(text)) return text;
  return URL.canParse(text, base) ? absolute(new URL(text, base).href, PAGES) : null;
}

function absolute(text: unknown, schemes: ReadonlySet<string>): string | null {
  if (typeof text !== "string" || !URL.canParse(text.trim())) return null;
  const url = new URL(text.trim());
  return schemes.has(url.protocol) ? url.href : null;
}
