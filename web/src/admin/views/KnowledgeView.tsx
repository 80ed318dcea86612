import { useState } from "preact/hooks";
import { formatDate, NAMESPACES, TYPES } from "../../view/knowledge";
import type { KnowledgeHit } from "../api";
import { useLoaded } from "../context";
import { count } from "../format";
import { type Column, Heading, LoadState, Table } from "../parts";

const COLUMNS: readonly Column<KnowledgeHit>[] = [
  { head: "Title", cell: ({ title }) => title, kind: "text" },
  { head: "Text", cell: ({ snippet }) => <span class="clamped">{snippet}</span>, kind: "text" },
  { head: "Namespace", cell: ({ namespace }) => namespace },
  { head: "Type", cell: ({ type }) => TYPES[type] ?? type },
  { head: "Updated", cell: ({ last_updated }) => <time dateTime={last_updated}>{formatDate(last_updated)}</time> },
];
const SCORE: Column<KnowledgeHit> = { head: "Score", cell: ({ score }) => score?.toFixed(2) ?? "", kind: "number" };

/** How much the knowledge base holds, and a search as a user makes it. Personal records of others are only counted. */
export function KnowledgeView() {
  const [typed, setTyped] = useState("");
  const [query, setQuery] = useState("");
  const counts = useLoaded((api) => api.knowledge(), "knowledge");
  const found = useLoaded((api) => api.findRecords(query), `records ${query}`, false);
  return (
    <>
      <Heading title="Knowledge base" />
      <LoadState loaded={counts} />
      {counts.data !== null && (
        <dl class="facts">
          {counts.data.namespaces.map(({ namespace, records }) => (
            <div key={namespace}><dt>{namespace}<span class="visually-hidden">: {NAMESPACES[namespace]}</span></dt><dd>{count(records, "record")}</dd></div>
          ))}
          <div><dt>Passages</dt><dd>{counts.data.passages.toLocaleString()}</dd></div>
          <div><dt>Found by meaning</dt><dd>{counts.data.embedder === "" ? "no, by words alone" : `${counts.data.vectors.toLocaleString()} (${counts.data.embedder})`}</dd></div>
        </dl>
      )}
      <form
        class="search-form"
        role="search"
        aria-label="Search the knowledge base"
        onSubmit={(event) => {
          event.preventDefault();
          setQuery(typed.trim());
        }}
      >
        <label class="labelled wide-field">
          Search shared records, and personal ones of your own
          <input class="field" type="search" maxLength={200} value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
        </label>
        <span class="search-buttons"><button type="submit" class="button primary">Search</button></span>
      </form>
      <LoadState loaded={found} />
      {found.data !== null && (
        <Table
          caption={query === "" ? "The newest records" : `What “${query}” finds, the best first`}
          columns={query === "" ? COLUMNS : [...COLUMNS, SCORE]}
          rows={found.data.results}
          keyOf={({ id, namespace }) => `${namespace} ${id}`}
          empty={query === "" ? "There are no records that you may read." : "Nothing was found."}
        />
      )}
    </>
  );
}
