import { useState } from "preact/hooks";
import type { SessionEntry } from "../api";
import { useLoadedPages } from "../context";
import { count, describeSession, matches, shortId } from "../format";
import { Badge, type Column, Filter, Heading, LoadState, More, Table, Time } from "../parts";
import { linkTo } from "../routes";

const COLUMNS: readonly Column<SessionEntry>[] = [
  { head: "Session", cell: ({ id }) => <a href={linkTo("audit", null, { session: id })} title={id}><code>{shortId(id)}</code><span class="visually-hidden">, audit</span></a> },
  { head: "User", cell: ({ user }) => <a href={linkTo("conversations", null, { user })}>{user}</a> },
  { head: "State", cell: (session) => <Badge {...describeSession(session)} /> },
  { head: "Mode", cell: ({ mode }) => mode },
  { head: "Model", cell: ({ model }) => model ?? <span class="faint">–</span> },
  {
    head: "Conversation",
    cell: ({ conversation_id: id, stored }) =>
      stored ? <a href={linkTo("conversations", id)} title={id}>Timeline<span class="visually-hidden"> of {shortId(id)}</span></a> : <span class="faint">not begun</span>,
  },
  { head: "Node", cell: ({ node, held }) => <span class={held ? "" : "faint"}><code>{node}</code></span>, kind: "text" },
  { head: "Updated", cell: ({ updated_ms }) => <Time at={updated_ms} /> },
];

/** The sessions of all nodes, from the store, with what this process knows of its own. */
export function SessionsView() {
  const [filter, setFilter] = useState("");
  const loaded = useLoadedPages((api, before) => api.sessions("", before), "sessions");
  const rows = (loaded.data ?? []).filter((each) => matches(filter, each.id, each.user, each.node, each.mode, each.model, describeSession(each).text));
  return (
    <>
      <Heading title="Sessions">
        <Filter label="Filter sessions" value={filter} change={setFilter} left={count(rows.length, "session")} />
      </Heading>
      <LoadState loaded={loaded} />
      {loaded.data !== null && (
        <Table
          caption="Sessions of all nodes, the most recently used first"
          columns={COLUMNS}
          rows={rows}
          keyOf={({ id }) => id}
          empty={filter === "" ? "There are no sessions. One begins when a client connects." : "No session matches the filter."}
        />
      )}
      <More more={loaded.more} />
    </>
  );
}
