import type { PageState } from "../view/state";
import { describeAssistant, describeConnection, describeMicrophone, type Status } from "../view/format";
import { useSelector } from "./hooks";
import { Icon, type IconName } from "./Icon";

export type SheetName = "history" | "knowledge" | "status" | "settings" | "keys";

const BUTTONS: readonly { sheet: SheetName; label: string; icon: IconName }[] = [
  { sheet: "history", label: "Conversations and calls", icon: "history" },
  { sheet: "knowledge", label: "Knowledge base", icon: "book" },
  { sheet: "status", label: "Models, latency and notices", icon: "pulse" },
  { sheet: "settings", label: "Settings", icon: "settings" },
  { sheet: "keys", label: "Keyboard shortcuts", icon: "keys" },
];

export function Header({ open }: { open: (sheet: SheetName) => void }) {
  return (
    <header class="top">
      <h1 class="brand">Antiphon</h1>
      <div class="states" role="status" aria-label="Status">
        <State label="Connection" describe={describeConnection} />
        <State label="Microphone" describe={describeMicrophone} />
        <State label="Assistant" describe={describeAssistant} />
      </div>
      <nav class="top-buttons" aria-label="Panels">
        {BUTTONS.map(({ sheet, label, icon }) => (
          <button key={sheet} type="button" class="icon-button" aria-label={label} title={label} onClick={() => open(sheet)}>
            <Icon name={icon} />
          </button>
        ))}
      </nav>
    </header>
  );
}

function State({ label, describe }: { label: string; describe: (state: PageState) => Status }) {
  const text = useSelector((state) => describe(state).text);
  const tone = useSelector((state) => describe(state).tone);
  return (
    <span class="state" data-tone={tone}>
      <span class="visually-hidden">{label}: </span>
      {text}
    </span>
  );
}
