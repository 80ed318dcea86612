import { describePause } from "../view/format";
import { Composer } from "./Composer";
import { EnergyWarning } from "./Energy";
import { usePage, useSelector } from "./hooks";
import { Icon } from "./Icon";
import { TalkButton } from "./TalkButton";

export function Dock({ hasOrb, showStatus }: { hasOrb: boolean; showStatus: () => void }) {
  const canTalk = useSelector((state) => state.hasVoice !== false);
  return (
    <footer class="dock">
      <div class="column">
        <EnergyWarning showStatus={showStatus} />
        <CallControls />
        <div class="dock-line">
          {hasOrb && canTalk && <TalkButton size="small" />}
          <Composer />
        </div>
      </div>
    </footer>
  );
}

/** The controls of a call. They are shown for as long as the call lasts, in sheets too. */
export function CallControls() {
  const page = usePage();
  const isInCall = useSelector((state) => state.talk === "hands_free");
  const isMuted = useSelector(({ microphone }) => microphone.state === "on" && microphone.muted);
  const isOn = useSelector(({ microphone }) => microphone.state === "on");
  const pause = useSelector(describePause);
  if (!isInCall) return null;
  return (
    <div class="call-controls">
      {pause !== null && <span class="call-paused"><Icon name="micOff" /> {pause}</span>}
      <button type="button" class="pill" aria-pressed={isMuted} disabled={!isOn} onClick={page.toggleMute}>
        <Icon name={isMuted ? "micOff" : "mic"} /> {isMuted ? "Unmute" : "Mute"}
      </button>
      <button type="button" class="pill" onClick={page.toggleTalk}>
        <Icon name="end" /> End call
      </button>
    </div>
  );
}
