/**
 * Parses Markdown, as models write it, to a tree of plain values. The tree contains no markup, so nothing that a model or
 * a web page says can become an element, an attribute or a script. Pictures become links, since loading one would tell its
 * server that the answer was read.
 */

import { linkUrl } from "./urls";

export type Inline =
  | { type: "text"; text: string }
  | { type: "code"; text: string }
  | { type: "break" }
  | { type: "strong" | "em" | "del"; children: Inline[] }
  | { type: "link"; url: string; children: Inline[] };

export type Block =
  | { type: "paragraph"; children: Inline[] }
  | { type: "heading"; level: number; children: Inline[] }
  | { type: "code"; language: string; text: string }
  | { type: "quote"; children: Block[] }
  | { type: "list"; start: number | null; items: Block[][] }
  | { type: "table"; head: Inline[][]; rows: Inline[][][] }
  | { type: "rule" };

/** Nobody nests deeper, except in hostile text. */
const MAX_DEPTH = 8;

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`\s]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.+?)\s*#*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const MARKER = /^( *)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const DELIMITERS = /^ *\|?(?: *:?-+:? *\|)+(?: *:?-+:? *)?\|? *$/;

export function parseMarkdown(text: string): Block[] {
  return parseBlocks(text.replaceAll("\r\n", "\n").replaceAll("\t", "    ").split("\n"), 0);
}

function parseBlocks(lines: readonly string[], depth: number): Block[] {
  const blocks: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at]!;
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    if (line.trim() === "") {
      at += 1;
    } else if (fence !== null) {
      const end = findFenceEnd(lines, at + 1, fence[1]!);
      blocks.push({ type: "code", language: fence[2]!, text: lines.slice(at + 1, end).join("\n") });
      at = end + 1;
    } else if (heading !== null) {
      blocks.push({ type: "heading", level: heading[1]!.length, children: parseInline(heading[2]!) });
      at += 1;
    } else if (RULE.test(line)) {
      blocks.push({ type: "rule" });
      at += 1;
    } else if (depth < MAX_DEPTH && QUOTE.test(line)) {
      const end = findEnd(lines, at, (each) => !QUOTE.test(each));
      const inner = lines.slice(at, end).map((each) => QUOTE.exec(each)![1]!);
      blocks.push({ type: "quote", children: parseBlocks(inner, depth + 1) });
      at = end;
    } else if (depth < MAX_DEPTH && MARKER.test(line)) {
      const [list, end] = parseList(lines, at, depth);
      blocks.push(list);
      at = end;
    } else if (line.includes("|") && DELIMITERS.test(lines[at + 1] ?? "")) {
      const end = findEnd(lines, at + 2, (each) => !each.includes("|"));
      const rows = lines.slice(at + 2, end).map(parseCells);
      blocks.push({ type: "table", head: parseCells(line), rows });
      at = end;
    } else {
      const end = findEnd(lines, at + 1, (each, index) => isInterruption(lines, each, index));
      blocks.push({ type: "paragraph", children: parseInline(lines.slice(at, end).join("\n")) });
      at = end;
    }
  }
  return blocks;
}

function findEnd(lines: readonly string[], from: number, ends: (line: string, index: number) => boolean): number {
  let at = from;
  while (at < lines.length && !ends(lines[at]!, at)) at += 1;
  return at;
}

function findFenceEnd(lines: readonly string[], from: number, fence: string): number {
  // A fence without an end runs to the end of the text: it is still being streamed.
  return findEnd(lines, from, (line) => line.trim().startsWith(fence) && line.trim().replaceAll(fence[0]!, "") === "");
}

function isInterruption(lines: readonly string[], line: string, index: number): boolean {
  if (line.trim() === "" || FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line)) return true;
  return MARKER.test(line) || (line.includes("|") && DELIMITERS.test(lines[index + 1] ?? ""));
}

function parseList(lines: readonly string[], from: number, depth: number): [Block, number] {
  const first = MARKER.exec(lines[from]!)!;
  const base = first[1]!.length;
  const isOrdered = /\d/.test(first[2]!);
  const items: string[][] = [];
  let at = from;
  for (; at < lines.length; at += 1) {
    const line = lines[at]!;
    const marker = MARKER.exec(line);
    const indent = line.length - line.trimStart().length;
    if (marker !== null && indent <= base + 1) {
      if (/\d/.test(marker[2]!) !== isOrdered || indent < base || RULE.test(line)) break;
      items.push([marker[3]!]);
    } else if (line.trim() === "") {
      const next = lines[at + 1] ?? "";
      // A blank line ends the list, unless the next line belongs to it.
      if (next.trim() === "" || (next.length - next.trimStart().length <= base + 1 && !MARKER.test(next))) break;
      items.at(-1)!.push("");
    } else if (indent > base + 1) {
      items.at(-1)!.push(line.slice(Math.min(indent, base + (isOrdered ? 3 : 2))));
    } else if (isInterruption(lines, line, at)) {
      break;
    } else {
      items.at(-1)!.push(line);
    }
  }
  const start = isOrdered ? Number.parseInt(first[2]!, 10) : null;
  return [{ type: "list", start, items: items.map((item) => parseBlocks(item, depth + 1)) }, at];
}

function parseCells(line: string): Inline[][] {
  const inner = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => parseInline(cell.trim().replaceAll("\\|", "|")));
}

const INLINE = new RegExp(
  [
    "\\\\([\\\\`*_{}\\[\\]()#+\\-.!|~>])", // 1: escaped
    "(`+)([^`](?:.*?[^`])?)\\2(?!`)", // 2, 3: code
    "!?\\[([^\\]\\n]{0,500})\\]\\(\\s*<?([^\\s<>()]*(?:\\([^\\s<>()]*\\)[^\\s<>()]*)*)>?(?:\\s+[\"'][^\"'\\n]*[\"'])?\\s*\\)", // 4, 5: link
    "(\\*\\*|__)(?=\\S)(.+?\\S??)\\6", // 6, 7: strong
    "~~(?=\\S)(.+?)~~", // 8: deleted
    "\\*(?=[^\\s*])([^*\\n]*[^\\s*])\\*", // 9: emphasis
    "(?<![\\p{L}\\p{N}_])_(?=[^\\s_])([^_\\n]*[^\\s_])_(?![\\p{L}\\p{N}_])", // 10: emphasis
    "<?(https?:\\/\\/[^\\s<>\"'`]*[^\\s<>\"'`.,;:!?)\\]}*_~])>?", // 11: address
    "(?: {2,}|\\\\)\\n", // line break
  ].join("|"),
  "gsu",
);

export function parseInline(text: string, depth = 0): Inline[] {
  if (depth > MAX_DEPTH) return [{ type: "text", text }];
  const found: Inline[] = [];
  const push = (plain: string) => {
    if (plain !== "") found.push({ type: "text", text: plain });
  };
  let last = 0;
  for (const match of text.matchAll(INLINE)) {
    push(text.slice(last, match.index));
    last = match.index + match[0].length;
    const [whole, escaped, , code, label, target, , strong, deleted, star, under, address] = match;
    if (escaped !== undefined) push(escaped);
    else if (code !== undefined) found.push({ type: "code", text: code });
    else if (label !== undefined) found.push(...makeLink(label, target ?? "", whole, depth));
    else if (strong !== undefined) found.push({ type: "strong", children: parseInline(strong, depth + 1) });
    else if (deleted !== undefined) found.push({ type: "del", children: parseInline(deleted, depth + 1) });
    else if (star !== undefined) found.push({ type: "em", children: parseInline(star, depth + 1) });
    else if (under !== undefined) found.push({ type: "em", children: parseInline(under, depth + 1) });
    else if (address !== undefined) found.push(...makeLink(null, address, whole, depth));
    else found.push({ type: "break" });
  }
  push(text.slice(last));
  return found;
}

function makeLink(label: string | null, target: string, whole: string, depth: number): Inline[] {
  const url = linkUrl(target);
  if (url === null) return [{ type: "text", text: whole }];
  const children: Inline[] = label ? parseInline(label, depth + 1) : [{ type: "text", text: target }];
  // A link inside a link would be invalid HTML.
  return [{ type: "link", url, children: children.map((each) => (each.type === "link" ? { type: "text", text: target } : each)) }];
}
