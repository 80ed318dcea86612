import type { Ladder, Rung, SessionEnergy } from "../api";
import { useLoaded } from "../context";
import { describeRung, shortId } from "../format";
import { Badge, type Column, Heading, LoadState, Table } from "../parts";
import { linkTo } from "../routes";

const RUNGS: readonly Column<Rung>[] = [
  { head: "Level", cell: ({ level }) => level },
  { head: "Model", cell: ({ model }) => model, kind: "text" },
  { head: "State", cell: (rung) => <Badge {...describeRung(rung)} /> },
  { head: "After an interruption", cell: ({ resumable, fallback }) => (resumable ? "resumes its session" : fallback ? "continues from a summary" : "is told the conversation") },
];

const SESSIONS: readonly Column<SessionEnergy>[] = [
  { head: "Session", cell: ({ session_id: id }) => <a href={linkTo("audit", null, { session: id })} title={id}><code>{shortId(id)}</code><span class="visually-hidden">, audit</span></a> },
  { head: "User", cell: ({ user }) => user },
  { head: "Mode", cell: ({ mode }) => mode },
  { head: "Voice", cell: ({ voice }) => voice ?? "–", kind: "number" },
  { head: "Text", cell: ({ text }) => text ?? "–", kind: "number" },
  { head: "Model", cell: ({ model }) => model ?? <span class="faint">none</span>, kind: "text" },
  { head: "Client", cell: ({ connected }) => <Badge {...(connected ? { text: "Connected", tone: "good" } : { text: "Parked", tone: "busy" })} /> },
];

/** The models of each level of energy, and the levels of the sessions of this process. */
export function EnergyView() {
  const loaded = useLoaded((api) => api.energy(), "energy");
  return (
    <>
      <Heading title="Energy" />
      <LoadState loaded={loaded} />
      {loaded.data?.ladders.map((ladder) => (
        <Table key={ladder.mode} caption={describeLadder(ladder)} columns={RUNGS} rows={ladder.rungs} keyOf={({ level }) => String(level)} empty="There is no model." />
      ))}
      {loaded.data !== null && (
        <Table
          caption="Sessions of this node"
          columns={SESSIONS}
          rows={loaded.data.sessions}
          keyOf={({ session_id }) => session_id}
          empty="This node has no sessions in memory."
        />
      )}
    </>
  );
}

function describeLadder({ mode, best, max }: Ladder): string {
  const name = mode === "voice" ? "Voice" : "Text";
  return best === 0 ? `${name}: no model can answer right now` : `${name}: new ${mode === "voice" ? "calls" : "conversations"} begin at level ${best} of ${max}`;
}
