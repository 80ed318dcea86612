import { useState } from "preact/hooks";
import { AUDIT_FIELDS, type AuditEntry, type AuditSearch } from "../api";
import { useLoadedPages } from "../context";
import { count, describeOutcome, describeRun, formatMs, shortId, toLocal, toMs } from "../format";
import { Badge, type Column, Folded, Heading, LoadState, More, Table, Time } from "../parts";
import { linkTo } from "../routes";

const LABELS: Readonly<Record<(typeof AUDIT_FIELDS)[number], string>> = {
  user: "User", tool: "Tool", outcome: "Outcome", session: "Session", conversation: "Conversation",
};
const OUTCOMES = [
  "ok", "event", "VALIDATION", "NOT_FOUND", "SESSION_INACTIVE", "SESSION_ACTIVE", "MODE_RESTRICTED", "TRANSIENT", "PERMANENT", "RATE_LIMIT",
  "AUTH", "CONFLICT", "CONFIRMATION_REQUIRED", "INTERNAL",
];

const COLUMNS: readonly Column<AuditEntry>[] = [
  { head: "Time", cell: ({ line }) => <Time at={line.ts_ms} /> },
  { head: "User", cell: ({ line }) => line.user },
  { head: "Tool", cell: ({ line }) => (line.tool === "" ? <span class="faint">–</span> : <code>{line.tool}</code>) },
  { head: "Outcome", cell: ({ line }) => <Badge {...describeOutcome({ outcome: line.outcome ?? "ok" })} /> },
  { head: "Duration", cell: ({ line }) => (line.event === undefined ? formatMs(line.duration_ms ?? 0) : ""), kind: "number" },
  { head: "Notes", cell: (entry) => <Notes {...entry} />, kind: "text" },
  {
    head: "Conversation",
    cell: ({ line: { conversation } }) =>
      conversation === undefined ? <span class="faint">–</span> : <a href={linkTo("conversations", conversation)} title={conversation}>Timeline<span class="visually-hidden"> of {shortId(conversation)}</span></a>,
  },
  { head: "Mode", cell: ({ line }) => line.mode },
];

/** What else the line has. */
function Notes({ number, line: { args, clamped, data, ...line } }: AuditEntry) {
  const details = Object.fromEntries(Object.entries({ args, clamped, data }).filter(([, value]) => value !== undefined && value !== null));
  const text = describeRun(line);
  if (text === "" && Object.keys(details).length === 0) return null;
  return (
    <div>
      {text}
      {Object.keys(details).length > 0 && <Folded label="Details" of={`line ${number}`} value={details} />}
    </div>
  );
}

/** What is searched for is in the address, so that other views can link to a search. */
export function AuditView({ search }: { search: AuditSearch }) {
  const loaded = useLoadedPages((api, before) => api.audit(search, before), JSON.stringify(search), false);
  return (
    <>
      <Heading title="Audit">
        <button type="button" class="small-button" onClick={loaded.reload}>Refresh</button>
      </Heading>
      <SearchForm search={search} />
      <LoadState loaded={loaded} />
      {loaded.data !== null && (
        <>
          <p class="visually-hidden" role="status">{count(loaded.data.length, "line")}{loaded.more === null ? "" : " or more"} found.</p>
          <Table
            caption="Tool calls and events, the newest first"
            columns={COLUMNS}
            rows={loaded.data}
            keyOf={({ number }) => String(number)}
            empty={Object.keys(search).length === 0 ? "The audit is empty. Every tool call leaves a line." : "Nothing in the audit matches."}
          />
        </>
      )}
      <More more={loaded.more} />
    </>
  );
}

function SearchForm({ search }: { search: AuditSearch }) {
  const [fields, setFields] = useState<AuditSearch>(search);
  const [since, setSince] = useState(() => toLocal(search.since));
  const [until, setUntil] = useState(() => toLocal(search.until));
  return (
    <form
      class="search-form"
      role="search"
      aria-label="Search the audit"
      onSubmit={(event) => {
        event.preventDefault();
        const trimmed = Object.fromEntries(AUDIT_FIELDS.map((name) => [name, fields[name]?.trim()]));
        location.hash = linkTo("audit", null, { ...trimmed, since: toMs(since), until: toMs(until) });
      }}
    >
      {AUDIT_FIELDS.map((name) => (
        <label key={name} class="labelled">
          {LABELS[name]}
          {name === "outcome" ? (
            <select class="field" value={fields[name] ?? ""} onChange={(event) => setFields({ ...fields, [name]: event.currentTarget.value })}>
              <option value="">Any</option>
              {OUTCOMES.map((each) => <option key={each} value={each}>{describeOutcome({ outcome: each }).text}</option>)}
            </select>
          ) : (
            <input
              class="field"
              type="text"
              autocomplete="off"
              spellcheck={false}
              value={fields[name] ?? ""}
              onInput={(event) => setFields({ ...fields, [name]: event.currentTarget.value })}
            />
          )}
        </label>
      ))}
      <label class="labelled">
        From
        <input class="field" type="datetime-local" value={since} onInput={(event) => setSince(event.currentTarget.value)} />
      </label>
      <label class="labelled">
        Until
        <input class="field" type="datetime-local" value={until} onInput={(event) => setUntil(event.currentTarget.value)} />
      </label>
      <span class="search-buttons">
        <button type="submit" class="button primary">Search</button>
        <a class="button" href={linkTo("audit")}>Clear</a>
      </span>
    </form>
  );
}
