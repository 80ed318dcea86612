/** The thread as Markdown, to copy or to keep. */

import type { Item } from "./state";
import { formatValue, nameTool } from "./words";

export function toMarkdown(items: readonly Item[]): string {
  return `${items.map(writeItem).filter((text) => text !== "").join("\n\n")}\n`;
}

function writeItem(item: Item): string {
  switch (item.kind) {
    case "user":
      return item.status === "interim" ? "" : `**You:** ${item.text}`;
    case "assistant":
      return `**Antiphon:** ${item.text}${item.status === "interrupted" ? " *(interrupted)*" : ""}`;
    case "tool":
      return `${fence(`${nameTool(item.name)} (${item.status})\n${formatValue(item.args)}\n${formatValue(item.result)}`)}`;
    case "image":
      return `![${item.caption ?? "Picture"}](${item.url})`;
    case "event":
      return `*${item.text}*`;
    case "flyout":
      return "";
  }
}

/** Longer than any in the text, so that the text cannot end it. */
function fence(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const ticks = "`".repeat(longest + 1);
  return `${ticks}\n${text}\n${ticks}`;
}
