import { findActivity } from "../view/words";
import { Composer } from "./Composer";
import { usePage, usePart } from "./context";
import { Icon } from "./Icon";
import { TalkButton } from "./TalkButton";

export function Dock({ hasOrb }: { hasOrb: boolean }) {
  return (
    <footer class="dock">
      <div class="column">
        <CallControls />
        <div class="dock-line">
          {hasOrb && <TalkButton size="small" />}
          <Composer />
        </div>
      </div>
    </footer>
  );
}

/** What can be done in a call, and while an answer is made. */
function CallControls() {
  const page = usePage();
  const talk = usePart((state) => state.talk);
  const isMuted = usePart(({ microphone }) => microphone.state === "on" && microphone.muted);
  const isOn = usePart(({ microphone }) => microphone.state === "on");
  const activity = usePart(findActivity);
  const isBusy = activity === "thinking" || activity === "speaking" || activity === "tool";
  if (talk === "off" && !isBusy) return null;
  return (
    <div class="call-controls">
      {talk === "held" && <span class="quiet">Listening as long as you hold it</span>}
      {talk === "hands_free" && (
        <>
          <button type="button" class="pill" aria-pressed={isMuted} disabled={!isOn} onClick={page.toggleMute}>
            <Icon name={isMuted ? "micOff" : "mic"} /> {isMuted ? "Unmute" : "Mute"}
          </button>
          <button type="button" class="pill" onClick={page.toggleTalk}>
            <Icon name="end" /> End call
          </button>
        </>
      )}
      {isBusy && (
        <button type="button" class="pill" onClick={page.interrupt}>
          <Icon name="stop" /> Stop
        </button>
      )}
    </div>
  );
}
