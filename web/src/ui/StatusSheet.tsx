import { useLayoutEffect, useRef } from "preact/hooks";
import type { EnergyReason } from "../client/antiphon";
import { summarizeLatency } from "../view/latency";
import type { Energy } from "../view/state";
import { formatDuration, formatTime } from "../view/format";
import { useSelector } from "./hooks";
import { Sheet } from "./Sheet";

const REASONS: Readonly<Record<EnergyReason, string>> = {
  "rate-limit-exceeded": "lowered by a rate limit",
  "session-reset": "restored",
  manual: "set by the operator",
};

export function StatusSheet({ close }: { close: () => void }) {
  return (
    <Sheet title="Energy, latency and notices" side="right" close={close}>
      <EnergyMeters />
      <Latency />
      <RecentNotices />
    </Sheet>
  );
}

function EnergyMeters() {
  const { voice, text } = useSelector((state) => state.energy);
  return (
    <section class="group">
      <h3>Energy</h3>
      <p class="quiet">The quality level of the models in use. It drops while a provider's limits are exceeded.</p>
      {voice !== null && <Meter label="Voice" energy={voice} />}
      {text !== null && <Meter label="Text" energy={text} />}
      {voice === null && text === null && <p class="quiet">This server does not report it.</p>}
    </section>
  );
}

function Meter({ label, energy }: { label: string; energy: Energy }) {
  const bar = useRef<HTMLSpanElement>(null);
  const { level, max, model, reason } = energy;
  useLayoutEffect(() => {
    bar.current?.style.setProperty("--share", String(max > 0 ? Math.min(1, level / max) : 0));
  }, [level, max]);
  const words = `${level} of ${max}${model === null ? "" : `, ${model}`}${reason === null ? "" : `, ${REASONS[reason] ?? reason}`}`;
  return (
    <div class="meter-row">
      <span class="meter-label">{label}</span>
      <span
        class="meter"
        role="meter"
        aria-label={`${label} energy`}
        aria-valuemin={0}
        aria-valuemax={max}
        aria-valuenow={level}
        aria-valuetext={words}
        data-low={level <= 1 && max > 1}
      >
        <span ref={bar} class="meter-bar" />
      </span>
      <span class="quiet meter-words">{level === 0 ? "Exhausted" : words}</span>
    </div>
  );
}

function Latency() {
  const metrics = useSelector((state) => state.metrics);
  return (
    <section class="group">
      <h3>Latency</h3>
      {metrics.length === 0 ? (
        <p class="quiet">Measured with each answer.</p>
      ) : (
        <table class="figures">
          <thead>
            <tr>
              <th scope="col">Stage</th>
              <th scope="col">Last</th>
              <th scope="col">Median of {metrics.length}</th>
            </tr>
          </thead>
          <tbody>
            {summarizeLatency(metrics).map(({ stage, label, lastMs, medianMs }) => (
              <tr key={stage} class={stage === "total_ms" ? "total" : ""}>
                <th scope="row">{label}</th>
                <td>{lastMs === null ? "–" : formatDuration(lastMs)}</td>
                <td>{medianMs === null ? "–" : formatDuration(medianMs)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function RecentNotices() {
  const notices = useSelector((state) => state.notices);
  return (
    <section class="group">
      <h3>Recent notices</h3>
      {notices.length === 0 && <p class="quiet">No notices yet.</p>}
      <ul class="list">
        {notices.toReversed().map(({ key, kind, text, at }) => (
          <li key={key} class="notice-row" data-kind={kind}>
            <span>{text}</span>
            <time class="quiet">{formatTime(at)}</time>
          </li>
        ))}
      </ul>
    </section>
  );
}
