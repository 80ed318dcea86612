/** The parts that views are made of: tables, times, badges, fields and buttons. */

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Badge as BadgeText, formatFullTime, formatTime } from "./format";
import { UNREACHABLE } from "./api";
import { type Loaded, useAdmin } from "./context";

export interface Column<Row> {
  head: string;
  cell: (row: Row) => ComponentChildren;
  /** Numbers are set flush right; texts may be long; actions have no visible heading on a phone. */
  kind?: "number" | "text" | "action";
}

interface TableProps<Row> {
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row) => string;
  /** What is said if there are no rows. */
  empty: ComponentChildren;
}

/**
 * A table, whose first column names the row. On a narrow screen each row is a card. The roles are given because browsers
 * forget them when the layout of a table is changed.
 */
export function Table<Row>({ caption, columns, rows, keyOf, empty }: TableProps<Row>) {
  if (rows.length === 0) {
    return (
      <section class="table-box">
        <p class="caption">{caption}</p>
        <p class="empty">{empty}</p>
      </section>
    );
  }
  return (
    <div class="table-box">
      <table class="table" role="table">
        <caption class="caption">{caption}</caption>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map(({ head, kind }) => (
              <th key={head} role="columnheader" scope="col" data-kind={kind}>
                {kind === "action" ? <span class="visually-hidden">{head}</span> : head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr key={keyOf(row)} role="row">
              {columns.map(({ head, cell, kind }, index) =>
                index === 0 ? (
                  <th key={head} role="rowheader" scope="row" data-label={head} data-kind={kind}>{cell(row)}</th>
                ) : (
                  <td key={head} role="cell" data-label={head} data-kind={kind}>{cell(row)}</td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Time({ at }: { at: number | null }) {
  if (at === null) return <span class="faint">never</span>;
  return <time dateTime={new Date(at).toISOString()} title={formatFullTime(at)}>{formatTime(at, Date.now())}</time>;
}

export function Badge({ text, tone }: { text: ComponentChildren; tone: BadgeText["tone"] }) {
  return <span class="badge" data-tone={tone}>{text}</span>;
}

/** The heading of a view gets the focus when the view is opened, so that keys and screen readers go on from there. */
export function Heading({ title, children }: { title: string; children?: ComponentChildren }) {
  const { takesFocus } = useAdmin();
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => {
    document.title = `${title} · Antiphon admin`;
  }, [title]);
  useEffect(() => {
    if (takesFocus()) heading.current?.focus({ preventScroll: true });
  }, []);
  return (
    <div class="view-head">
      <h1 ref={heading} tabIndex={-1}>{title}</h1>
      {children}
    </div>
  );
}

/** What a view shows while it has no data, and if its data could not be loaded. */
export function LoadState({ loaded }: { loaded: Pick<Loaded<unknown>, "data" | "problem" | "at" | "reload"> }) {
  const { data, problem, at, reload } = loaded;
  // The page itself says that the server cannot be reached.
  if (problem === UNREACHABLE && data !== null) return <p class="faint">What is shown is from <Time at={at} />.</p>;
  if (problem !== "") {
    return (
      <div class="trouble" role="alert">
        <p>
          {problem === UNREACHABLE ? "Nothing could be loaded." : problem}
          {data !== null && <> What is shown is from <Time at={at} />.</>}
        </p>
        <button type="button" class="small-button" onClick={reload}>Try again</button>
      </div>
    );
  }
  return data === null ? <p class="empty" role="status">Loading…</p> : null;
}

interface FilterProps {
  label: string;
  value: string;
  change: (value: string) => void;
  /** How many rows are left, as text. Screen readers are told when it changes. */
  left?: string;
}

export function Filter({ label, value, change, left }: FilterProps) {
  return (
    <div class="filter">
      <input
        class="field"
        type="search"
        aria-label={label}
        placeholder={label}
        value={value}
        onInput={(event) => change(event.currentTarget.value)}
      />
      <span class="faint" role="status">{value !== "" && left}</span>
    </div>
  );
}

/** A button for what cannot be undone: it asks in place first. Escape, and leaving it, take the question back. */
export function ConfirmButton({ label, target, act }: { label: string; target: string; act: () => void }) {
  const [isAsked, setAsked] = useState(false);
  return (
    <button
      type="button"
      class="small-button"
      data-asked={isAsked}
      onBlur={() => setAsked(false)}
      onKeyDown={(event) => event.key === "Escape" && setAsked(false)}
      onClick={() => {
        if (isAsked) act();
        setAsked(!isAsked);
      }}
    >
      {isAsked ? `Really ${label.toLowerCase()}?` : label}
      <span class="visually-hidden"> {target}</span>
    </button>
  );
}

export function More({ more, label = "Show more" }: { more: (() => void) | null; label?: string }) {
  return more === null ? null : <button type="button" class="small-button more" onClick={more}>{label}</button>;
}

/** A value as JSON, folded. */
export function Folded({ label, of, value }: { label: string; of: string; value: unknown }) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return (
    <details class="folded">
      <summary>{label}<span class="visually-hidden"> of {of}</span></summary>
      <pre tabIndex={0} role="region" aria-label={`${label} of ${of}`}>{text}</pre>
    </details>
  );
}
