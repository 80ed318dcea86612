import { describePause, describeRecording } from "../view/format";
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
        <RecordingLine />
        <CallControls />
        <div class="dock-line">
          {hasOrb && canTalk && <TalkButton size="small" />}
          <Composer />
        </div>
      </div>
    </footer>
  );
}

/** Says whether calls are recorded. It is always there, so that a screen reader announces what it says. */
function RecordingLine() {
  const text = useSelector(describeRecording);
  const isActive = useSelector((state) => state.recording?.active === true);
  return (
    <p class="recording" role="status" aria-label="Recording" data-active={isActive}>
      {text !== "" && <><Icon name="record" /> {text}</>}
    </p>
  );
}

/** The controls of a call. They are shown for as long as the call lasts, in sheets too. */
export function CallControls() {
  const page = usePage();
  const isInCall = useSelector((state) => state.talk === "hands_free");
  const isMuted = useSelector(({ microphone }) => microphone.state === "on" && microphone.muted);
  const isOn = useSelector(({ microphone }) => microphone.state === "on");
  const pause = useSelector(describePause);
  const choice = useSelector((state) => state.recording?.choice);
  if (!isInCall) return null;
  return (
    <div class="call-controls">
      {pause !== null && <span class="call-paused"><Icon name="micOff" /> {pause}</span>}
      <button type="button" class="pill" aria-pressed={isMuted} disabled={!isOn} onClick={page.toggleMute}>
        <Icon name={isMuted ? "micOff" : "mic"} /> {isMuted ? "Unmute" : "Mute"}
      </button>
      {choice !== undefined && choice !== "always" && (
        <button type="button" class="pill" aria-pressed={choice === "on"} onClick={page.toggleRecording}>
          <Icon name="record" /> {choice === "on" ? "Stop recording" : "Record"}
        </button>
      )}
      <button type="button" class="pill" onClick={page.toggleTalk}>
        <Icon name="end" /> End call
      </button>
    </div>
  );
}
