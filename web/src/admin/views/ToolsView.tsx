import { useState } from "preact/hooks";
import type { LoadedTool, ToolChanges } from "../api";
import { useLoaded } from "../context";
import { count, formatMs, matches } from "../format";
import { Badge, type Column, Filter, Heading, LoadState, Table } from "../parts";
import { linkTo } from "../routes";

const COLUMNS: readonly Column<LoadedTool>[] = [
  { head: "Tool", cell: ({ id }) => <a href={linkTo("audit", null, { tool: id })}><code>{id}</code><span class="visually-hidden">, audit</span></a> },
  { head: "Version", cell: ({ version }) => version },
  { head: "Category", cell: ({ category }) => category },
  { head: "From", cell: ({ from_files }) => (from_files ? "files" : "an MCP server") },
  { head: "Calls", cell: ({ calls }) => calls.toLocaleString(), kind: "number" },
  { head: "Errors", cell: ({ errors }) => (errors > 0 ? <span class="bad">{errors.toLocaleString()}</span> : "0"), kind: "number" },
  { head: "Average", cell: ({ calls, average_ms }) => (calls === 0 ? "" : formatMs(average_ms)), kind: "number" },
];

/** The tools of this process, and what would change if those on disk were loaded. */
export function ToolsView() {
  const [filter, setFilter] = useState("");
  const loaded = useLoaded((api) => api.tools(), "tools");
  const rows = (loaded.data?.tools ?? []).filter((each) => matches(filter, each.id, each.category, each.version));
  return (
    <>
      <Heading title="Tools">
        <Filter label="Filter tools" value={filter} change={setFilter} left={count(rows.length, "tool")} />
      </Heading>
      <LoadState loaded={loaded} />
      {loaded.data !== null && (
        <dl class="facts">
          <div><dt>Registry version</dt><dd><code>{loaded.data.version}</code></dd></div>
          <div><dt>Of files alone</dt><dd><code>{loaded.data.built_version}</code></dd></div>
          <div><dt>Changes on disk</dt><dd>{loaded.data.locked ? "need a restart" : "are loaded by themselves"}</dd></div>
        </dl>
      )}
      <Changes />
      {loaded.data !== null && (
        <Table
          caption="Loaded tools, with their calls since they were loaded"
          columns={COLUMNS}
          rows={rows}
          keyOf={({ id }) => id}
          empty={filter === "" ? "No tools are loaded." : "No tool matches the filter."}
        />
      )}
    </>
  );
}

/** Comparing builds the tools, so it is done when it is asked for. */
function Changes() {
  const loaded = useLoaded<ToolChanges>((api) => api.toolChanges(), "changes", false);
  const { data } = loaded;
  return (
    <section class="panel" aria-labelledby="changes">
      <div class="panel-head">
        <h2 id="changes">On disk now</h2>
        <button type="button" class="small-button" onClick={loaded.reload}>Compare again</button>
      </div>
      <LoadState loaded={loaded} />
      {data !== null && data.problems.length > 0 && (
        <ul class="trouble">{data.problems.map((problem) => <li key={problem}>{problem}</li>)}</ul>
      )}
      {data !== null && data.tools.length === 0 && data.problems.length === 0 && <p class="faint">The folders of the tools hold what is running: {data.on_disk}.</p>}
      {data !== null && data.tools.length > 0 && (
        <>
          <p class="faint"><code>{data.running}</code> is running, and the folders would give <code>{data.on_disk}</code>.</p>
          <ul class="changes">
            {data.tools.map(({ tool, kind, changes }) => (
              <li key={tool}>
                <p class="tool-run">
                  <code>{tool}</code>
                  <Badge text={kind} tone={kind === "added" ? "good" : kind === "removed" ? "bad" : "busy"} />
                </p>
                <ul>
                  {changes.map(({ field, breaking, sentence }) => (
                    <li key={field + sentence}>
                      <span class="faint">{field}:</span> {sentence} {breaking && <Badge text="breaks callers" tone="bad" />}
                    </li>
                  ))}
                </ul>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}
