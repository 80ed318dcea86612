import { describeAssistant, describePause, nameKey } from "../view/format";
import { usePage, useSelector } from "./hooks";
import { TalkButton } from "./TalkButton";

/** What people ask for every day. The built-in assistant answers each of them, and only the weather needs a network. */
const EXAMPLES = [
  "Set a timer for five minutes",
  "Put milk on the shopping list",
  "Remind me to call Mum at six",
  "What's the weather in Oslo?",
] as const;

const IN_CALL = "Just start talking. You can interrupt at any time.";

/** The first screen: an invitation to talk, if the server has a voice, and to type. */
export function Welcome() {
  const canTalk = useSelector((state) => state.hasVoice !== false);
  const isInCall = useSelector((state) => state.talk !== "off");
  const pause = useSelector(describePause);
  const isClosed = useSelector((state) => state.connection.state === "closed");
  const title = useSelector((state) => (state.talk === "off" ? null : describeAssistant(state).text));
  const remark = useSelector((state) => state.items.findLast((item) => item.kind === "event")?.text);
  return (
    <div class="welcome">
      {canTalk && <TalkButton size="large" />}
      <p class="welcome-title">{title ?? (canTalk ? "Talk to me" : "Ask me anything")}</p>
      <p class="quiet">{isInCall ? (pause === null ? IN_CALL : `${pause}. You can't be heard now.`) : canTalk ? <HowToTalk /> : "Type below, or try one of these."}</p>
      {remark !== undefined && <p class="event" role="status">{remark}</p>}
      {!isInCall && !isClosed && <Examples />}
    </div>
  );
}

function HowToTalk() {
  const { talkKey } = usePage().settings.value;
  return (
    <>
      Tap the circle and talk, or hold it<span class="with-keys"> or <kbd>{nameKey(talkKey)}</kbd></span> while you talk. Or
      type below.
    </>
  );
}

function Examples() {
  const page = usePage();
  return (
    <ul class="examples" aria-label="Examples">
      {EXAMPLES.map((text) => (
        <li key={text}>
          <button type="button" class="pill" onClick={() => page.say(text)}>{text}</button>
        </li>
      ))}
    </ul>
  );
}
