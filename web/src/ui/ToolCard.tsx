import { findCitations } from "../view/urls";
import type { ToolItem } from "../view/state";
import { formatDuration, formatValue, titleTool } from "../view/format";
import { CopyButton } from "./CopyButton";
import { Icon } from "./Icon";

const STATUS: Readonly<Record<ToolItem["status"], string>> = {
  running: "Running",
  waiting: "Waiting for approval",
  approved: "Approved, running",
  declined: "Declined",
  expired: "Expired, not run",
  done: "Done",
  failed: "Failed",
  lost: "Outcome unknown: connection lost",
};

export function ToolCard({ item }: { item: ToolItem }) {
  const citations = findCitations(item.result);
  const duration = item.durationMs === null ? "" : ` · ${formatDuration(item.durationMs)}`;
  return (
    <div class="tool" data-status={item.status}>
      <details>
        <summary>
          <Icon name="tool" />
          <span class="tool-name">{titleTool(item)}</span>
          <span class="tool-hint">{hint(item)}</span>
          <span class="tool-status">
            {STATUS[item.status]}
            {duration}
          </span>
          <Icon name="down" />
        </summary>
        <div class="tool-inside">
          <ArgumentTable args={item.args} />
          {(item.status === "done" || item.status === "failed") && (
            <>
              <div class="tool-label">
                <span>{item.status === "failed" ? "Error" : "Result"}</span>
                <CopyButton text={() => formatValue(item.result)} label="Copy result" />
              </div>
              <pre tabIndex={0}>{formatValue(item.result)}</pre>
            </>
          )}
        </div>
      </details>
      {citations.length > 0 && (
        <ul class="citations" aria-label="Sources">
          {citations.map(({ url, title }) => (
            <li key={url}>
              <a href={url} target="_blank" rel="noopener noreferrer">{title}</a>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Why it failed, what the user was asked, or its first argument. */
function hint({ args, status, result, question }: ToolItem): string {
  if (status === "failed") return describeFailure(result);
  if (question !== null) return question.preview;
  if (typeof args !== "object" || args === null) return "";
  const [first] = Object.values(args as Record<string, unknown>);
  return typeof first === "string" || typeof first === "number" ? String(first) : "";
}

function describeFailure(result: unknown): string {
  const error = (result as { error?: unknown } | null)?.error;
  if (typeof error === "string") return error;
  const message = (error as { message?: unknown } | null | undefined)?.message;
  return typeof message === "string" ? message : "";
}

export function ArgumentTable({ args }: { args: unknown }) {
  if (typeof args !== "object" || args === null) {
    return args === null || args === undefined ? null : <pre tabIndex={0}>{formatValue(args)}</pre>;
  }
  const entries = Object.entries(args as Record<string, unknown>);
  if (entries.length === 0) return <p class="quiet">No arguments.</p>;
  return (
    <table class="arguments">
      <tbody>
        {entries.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{formatValue(value)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
