import { describeAssistant } from "../view/words";
import { usePage, usePart } from "./context";
import { nameKey } from "./SettingsSheet";
import { TalkButton } from "./TalkButton";

/** The first screen: an invitation to talk. */
export function Welcome() {
  const talk = usePart((state) => state.talk);
  const assistant = usePart((state) => describeAssistant(state).text);
  const { talkKey } = usePage().settings.value;
  return (
    <div class="welcome">
      <TalkButton size="large" />
      <p class="welcome-title">{talk === "off" ? "Talk to me" : assistant}</p>
      <p class="quiet">
        {talk === "off" ? (
          <>
            Tap the circle and speak, or hold it<span class="with-keys"> or <kbd>{nameKey(talkKey)}</kbd></span> while you
            speak. Writing works too.
          </>
        ) : (
          "Speak whenever you like. You can cut in at any time."
        )}
      </p>
    </div>
  );
}
