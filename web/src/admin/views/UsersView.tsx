import { useState } from "preact/hooks";
import type { UserEntry } from "../api";
import { useAdmin, useLoaded } from "../context";
import { count, matches } from "../format";
import { Badge, type Column, ConfirmButton, Filter, Heading, LoadState, Table, Time } from "../parts";
import { linkTo } from "../routes";

export function UsersView() {
  const { api, announce } = useAdmin();
  const [filter, setFilter] = useState("");
  const loaded = useLoaded((from) => from.users(), "users");
  const [problem, setProblem] = useState("");
  const rows = (loaded.data?.users ?? []).filter((each) => matches(filter, each.user, each.block?.reason));

  function unblock(user: string): void {
    api.unblock(user).then(
      () => {
        setProblem("");
        announce(`${user} is no longer blocked.`);
        loaded.reload();
      },
      (error: Error) => setProblem(error.message),
    );
  }

  const columns: readonly Column<UserEntry>[] = [
    { head: "User", cell: ({ user }) => <a href={linkTo("conversations", null, { user })}>{user}</a> },
    {
      head: "State",
      cell: ({ block }) => (block === null ? <span class="faint">not blocked</span> : <Badge tone="bad" text={<>Blocked until <Time at={block.until_ms} /></>} />),
    },
    { head: "Reason", cell: ({ block }) => block?.reason ?? "", kind: "text" },
    { head: "Conversations", cell: ({ conversations }) => conversations.toLocaleString(), kind: "number" },
    { head: "Sessions here", cell: ({ sessions }) => sessions.toLocaleString(), kind: "number" },
    { head: "Tokens", cell: ({ tokens }) => tokens.toLocaleString(), kind: "number" },
    { head: "Last turn", cell: ({ updated_ms }) => <Time at={updated_ms} /> },
    {
      head: "Actions",
      cell: ({ user, block }) => (block === null ? null : <ConfirmButton label="Unblock" target={user} act={() => unblock(user)} />),
      kind: "action",
    },
  ];
  return (
    <>
      <Heading title="Users">
        <Filter label="Filter users" value={filter} change={setFilter} left={count(rows.length, "user")} />
      </Heading>
      <LoadState loaded={loaded} />
      {problem !== "" && <p class="trouble" role="alert">{problem}</p>}
      {loaded.data !== null && (
        <Table
          caption={loaded.data.more ? "The first 500 users: those who are blocked, then the most recently active" : "Users: those who are blocked, then the most recently active"}
          columns={columns}
          rows={rows}
          keyOf={({ user }) => user}
          empty={filter === "" ? "Nobody has used this server yet." : "No user matches the filter."}
        />
      )}
    </>
  );
}
