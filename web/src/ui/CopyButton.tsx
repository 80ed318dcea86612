import { useState } from "preact/hooks";
import { Icon } from "./Icon";

const SHOWN_MS = 1600;

export function CopyButton({ text, label }: { text: () => string; label: string }) {
  const [outcome, setOutcome] = useState<"" | "Copied" | "Copy failed">("");
  async function copy(): Promise<void> {
    setOutcome((await copyText(text())) ? "Copied" : "Copy failed");
    setTimeout(() => setOutcome(""), SHOWN_MS);
  }
  return (
    <button type="button" class="quiet-button" aria-label={outcome || label} onClick={() => void copy()}>
      <Icon name={outcome === "Copied" ? "check" : "copy"} />
      <span aria-live="polite">{outcome || "Copy"}</span>
    </button>
  );
}

async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

/** Pages without HTTPS have no clipboard API, but may copy the selection. */
function copyBySelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  document.body.append(area);
  const before = document.activeElement;
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (before instanceof HTMLElement) before.focus();
  return isCopied;
}
