import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Mode } from "../client/antiphon";
import { describeExhausted, describeLevel, describeWait, findLow } from "../view/energy";
import type { Energy } from "../view/state";
import { usePage, useSecondsLeft, useSelector } from "./hooks";
import { Icon } from "./Icon";

const LABELS: Readonly<Record<Mode, string>> = { voice: "Voice", text: "Text" };

/** The model and the quality of each mode. */
export function EnergyMeters() {
  const { voice, text } = useSelector((state) => state.energy);
  const hasVoice = useSelector((state) => state.hasVoice !== false);
  const page = usePage();
  useEffect(() => page.checkEnergy(), []);
  return (
    <section class="group">
      <h3>Model quality</h3>
      <p class="quiet">While a provider limits its best model, a simpler one answers.</p>
      {voice !== null && hasVoice && <Meter mode="voice" energy={voice} />}
      {text !== null && <Meter mode="text" energy={text} />}
      {voice === null && text === null && <p class="quiet">This server does not report it.</p>}
    </section>
  );
}

function Meter({ mode, energy }: { mode: Mode; energy: Energy }) {
  const bar = useRef<HTMLSpanElement>(null);
  const { level, max, model } = energy;
  useLayoutEffect(() => {
    bar.current?.style.setProperty("--share", String(max > 0 ? Math.min(1, level / max) : 0));
  }, [level, max]);
  return (
    <div class="meter-row">
      <span class="meter-label">{LABELS[mode]}</span>
      <span
        class="meter"
        role="meter"
        aria-label={`${LABELS[mode]} model quality`}
        aria-valuemin={0}
        aria-valuemax={max}
        aria-valuenow={level}
        aria-valuetext={level === 0 ? describeExhausted(mode) : `${describeLevel(energy)}${model === null ? "" : `, ${model}`}`}
        data-low={level < max}
      >
        <span ref={bar} class="meter-bar" />
      </span>
      <span class="meter-words">{level === 0 ? <Exhausted mode={mode} /> : <Quality mode={mode} energy={energy} />}</span>
      {model !== null && <span class="quiet meter-words">{model}</span>}
    </div>
  );
}

/** Says what the quality is and when it gets better. The countdown is not announced. */
function Quality({ mode, energy }: { mode: Mode; energy: Energy }) {
  const wait = describeWait(mode, energy, useSecondsLeft(energy.betterAt));
  return (
    <>
      {describeLevel(energy)}
      {wait !== "" && <>, <span role="timer" aria-live="off">{wait}</span></>}
    </>
  );
}

/** Says that nothing can answer, and when to try again. */
export function Exhausted({ mode }: { mode: Mode }) {
  const energy = useSelector((state) => state.energy)[mode];
  const left = useSecondsLeft(energy?.betterAt ?? null);
  return (
    <>
      {describeExhausted(mode)} {energy !== null && <span role="timer" aria-live="off">{describeWait(mode, energy, left)}</span>}
    </>
  );
}

/** A small line beside the talk button, only while the quality is below the best. */
export function EnergyWarning({ showStatus }: { showStatus: () => void }) {
  const page = usePage();
  const mode = useSelector((state) => findLow(state, page.now()));
  return mode === null ? null : <LowEnergy key={mode} mode={mode} showStatus={showStatus} />;
}

function LowEnergy({ mode, showStatus }: { mode: Mode; showStatus: () => void }) {
  const energy = useSelector((state) => state.energy)[mode];
  const isUsed = useSelector((state) => (state.talk === "off" ? "text" : "voice")) === mode;
  const left = useSecondsLeft(energy?.betterAt ?? null);
  // The other mode has recovered: it starts with its best model again.
  if (energy === null || (!isUsed && left === 0)) return null;
  return (
    <button type="button" class="energy" data-empty={energy.level === 0} title="Show the models in use" onClick={showStatus}>
      <Icon name="pulse" />
      <span>
        {energy.level === 0 ? (
          <Exhausted mode={mode} />
        ) : (
          <>{isUsed ? "Model" : LABELS[mode]} quality: <Quality mode={mode} energy={energy} /></>
        )}
      </span>
    </button>
  );
}
