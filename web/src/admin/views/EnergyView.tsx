import type { EnergyState, Ladder, Rung, SessionEnergy } from "../api";
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

const NODE: Column<SessionEnergy> = { head: "Node", cell: ({ node }) => <code>{node}</code>, kind: "text" };

/** The models of each level of energy, and the levels of the sessions of all nodes. */
export function EnergyView() {
  const loaded = useLoaded((api) => api.energy(), "energy");
  return (
    <>
      <Heading title="Energy" />
      <LoadState loaded={loaded} />
      {loaded.data?.ladders.map((ladder) => (
        <Table key={ladder.mode} caption={describeLadder(ladder)} columns={RUNGS} rows={ladder.rungs} keyOf={({ level }) => String(level)} empty="There is no model." />
      ))}
      {loaded.data?.unreached.map((node) => (
        <div key={node} class="trouble" role="alert"><p>The node {node} does not answer, so its sessions are not shown.</p></div>
      ))}
      {loaded.data !== null && <Sessions {...loaded.data} />}
    </>
  );
}

/** The node of a session is shown if there is more than one. */
function Sessions({ sessions, unreached }: EnergyState) {
  const isAlone = new Set([...sessions.map(({ node }) => node), ...unreached]).size < 2;
  return (
    <Table
      caption={isAlone ? "Sessions" : "Sessions of all nodes"}
      columns={isAlone ? SESSIONS : [...SESSIONS, NODE]}
      rows={sessions}
      keyOf={({ session_id }) => session_id}
      empty="No node has a session in memory."
    />
  );
}

function describeLadder({ mode, best, max }: Ladder): string {
  const name = mode === "voice" ? "Voice" : "Text";
  return best === 0 ? `${name}: no model can answer right now` : `${name}: new ${mode === "voice" ? "calls" : "conversations"} begin at level ${best} of ${max}`;
}
