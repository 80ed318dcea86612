import { useState } from "preact/hooks";
import { summarizeLatency } from "../view/latency";
import { formatDuration, formatTime } from "../view/format";
import { EnergyMeters } from "./Energy";
import { usePage, useSelector } from "./hooks";
import { Sheet } from "./Sheet";

export function StatusSheet({ close }: { close: () => void }) {
  return (
    <Sheet title="Models, latency and notices" side="right" close={close}>
      <EnergyMeters />
      <RenewModel close={close} />
      <Latency />
      <RecentNotices />
    </Sheet>
  );
}

function RenewModel({ close }: { close: () => void }) {
  const page = usePage();
  const isConnected = useSelector(({ connection }) => connection.state === "open");
  const [isWorking, setWorking] = useState(false);
  const [problem, setProblem] = useState("");

  function renew(): void {
    setWorking(true);
    setProblem("");
    // The server says on the page when it is done.
    page.renewModel().then(close, (error: Error) => {
      setWorking(false);
      setProblem(error.message);
    });
  }

  return (
    <section class="group">
      <h3>New session, same context</h3>
      <p class="quiet">If the assistant repeats itself or answers in another language, start its model anew. The conversation is kept.</p>
      {problem !== "" && <p class="problem" role="alert">{problem}</p>}
      <button type="button" class="button wide" disabled={!isConnected || isWorking} aria-busy={isWorking} onClick={renew}>
        {isWorking ? "Starting the model anew…" : "New session, same context"}
      </button>
    </section>
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
