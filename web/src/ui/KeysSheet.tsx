import { nameKey } from "../view/format";
import { usePage, useSelector } from "./hooks";
import { Sheet } from "./Sheet";

export function KeysSheet({ close }: { close: () => void }) {
  const talkKey = nameKey(usePage().settings.value.talkKey);
  const canTalk = useSelector((state) => state.hasVoice !== false);
  const talking = [
    [`Hold ${talkKey}`, "Push-to-talk"],
    ["M", "Mute or unmute the microphone"],
  ] as const;
  const keys = [
    ...(canTalk ? talking : []),
    ["Escape", "Dismiss a reminder, close the open panel, or stop the assistant"],
    ["/", "Go to the message box"],
    ["Enter", "Send; with Shift, start a new line"],
    ["?", "Show this list"],
  ] as const;
  return (
    <Sheet title="Keyboard shortcuts" side="center" close={close}>
      <dl class="keys">
        {keys.map(([key, meaning]) => (
          <div key={key}>
            <dt><kbd>{key}</kbd></dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </Sheet>
  );
}
