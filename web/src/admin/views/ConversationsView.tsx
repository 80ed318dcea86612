import { useState } from "preact/hooks";
import type { ConversationEntry } from "../api";
import { useLoadedPages } from "../context";
import { count, matches } from "../format";
import { type Column, Filter, Heading, LoadState, More, Table, Time } from "../parts";
import { linkTo } from "../routes";

const COLUMNS: readonly Column<ConversationEntry>[] = [
  { head: "Title", cell: ({ id, title }) => <a href={linkTo("conversations", id)}>{title || "Untitled"}</a>, kind: "text" },
  { head: "User", cell: ({ user }) => <a href={linkTo("conversations", null, { user })}>{user}</a> },
  { head: "Begun", cell: ({ created_ms }) => <Time at={created_ms} /> },
  { head: "Last turn", cell: ({ updated_ms }) => <Time at={updated_ms} /> },
];

/** The conversations of one user, or of all. */
export function ConversationsView({ user }: { user: string }) {
  const [filter, setFilter] = useState("");
  const loaded = useLoadedPages((api, before) => api.conversations(user, before), `conversations ${user}`);
  const rows = (loaded.data ?? []).filter((each) => matches(filter, each.title, each.user, each.id));
  return (
    <>
      <Heading title={user === "" ? "Conversations" : `Conversations of ${user}`}>
        <Filter label="Filter conversations" value={filter} change={setFilter} left={count(rows.length, "conversation")} />
      </Heading>
      {user !== "" && <p class="crumbs"><a href={linkTo("conversations")}>All conversations</a></p>}
      <LoadState loaded={loaded} />
      {loaded.data !== null && (
        <Table
          caption="Conversations, the most recent first. Opening one is written into the audit."
          columns={COLUMNS}
          rows={rows}
          keyOf={({ id }) => id}
          empty={filter === "" ? "There are no conversations yet." : "No conversation matches the filter."}
        />
      )}
      <More more={loaded.more} />
    </>
  );
}
