import { usePage, usePart } from "./context";
import { nameKey } from "./SettingsSheet";
import { Sheet } from "./Sheet";

export function KeysSheet({ close }: { close: () => void }) {
  const talkKey = nameKey(usePage().settings.value.talkKey);
  const canTalk = usePart((state) => state.hasVoice !== false);
  const talking = [
    [`Hold ${talkKey}`, "Talk as long as it is down"],
    ["M", "Mute or unmute the microphone"],
  ] as const;
  const keys = [
    ...(canTalk ? talking : []),
    ["Escape", "Silence the assistant, or close what is open"],
    ["/", "Write a message"],
    ["Enter", "Send it; with Shift, a new line"],
    ["?", "This list"],
  ] as const;
  return (
    <Sheet title="Keys" side="center" close={close}>
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
