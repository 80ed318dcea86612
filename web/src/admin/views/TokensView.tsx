import { useState } from "preact/hooks";
import type { TokenEntry } from "../api";
import { useAdmin, useLoaded } from "../context";
import { count, matches } from "../format";
import { Badge, type Column, ConfirmButton, Filter, Heading, LoadState, Table, Time } from "../parts";

export function TokensView() {
  const { api, announce } = useAdmin();
  const [filter, setFilter] = useState("");
  const [problem, setProblem] = useState("");
  const loaded = useLoaded((from) => from.tokens(), "tokens");
  const rows = (loaded.data ?? []).filter((each) => matches(filter, each.id, each.user, each.name));

  function revoke({ id, user }: TokenEntry): void {
    api.revoke(id).then(
      () => {
        setProblem("");
        announce(`The token ${id} of ${user} is revoked. Its connections are closed within seconds.`);
        loaded.reload();
      },
      (error: Error) => setProblem(error.message),
    );
  }

  const columns: readonly Column<TokenEntry>[] = [
    { head: "Id", cell: ({ id }) => <code>{id}</code> },
    { head: "User", cell: ({ user }) => user },
    { head: "Name", cell: ({ name }) => name || <span class="faint">–</span>, kind: "text" },
    {
      head: "Kind",
      cell: ({ is_admin, is_current }) => (
        <span class="badges">
          {is_admin ? <Badge tone="busy" text="Admin" /> : <span class="faint">user</span>}
          {is_current && <Badge tone="good" text="In use by you" />}
        </span>
      ),
    },
    { head: "Created", cell: ({ created_ms }) => <Time at={created_ms} /> },
    {
      head: "Expires",
      cell: ({ expires_ms, is_expired }) => (is_expired ? <Badge tone="bad" text="Expired" /> : <Time at={expires_ms} />),
    },
    {
      head: "Actions",
      cell: (token) => <ConfirmButton label="Revoke" target={`the token ${token.id} of ${token.user}`} act={() => revoke(token)} />,
      kind: "action",
    },
  ];
  return (
    <>
      <Heading title="Tokens">
        <Filter label="Filter tokens" value={filter} change={setFilter} left={count(rows.length, "token")} />
      </Heading>
      <LoadState loaded={loaded} />
      {problem !== "" && <p class="trouble" role="alert">{problem}</p>}
      {loaded.data !== null && (
        <Table
          caption="Access tokens, the oldest first. Only their hashes are stored."
          columns={columns}
          rows={rows}
          keyOf={({ id }) => id}
          empty={filter === "" ? "There are no tokens." : "No token matches the filter."}
        />
      )}
    </>
  );
}
