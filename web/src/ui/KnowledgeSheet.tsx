import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { describeRecord, type FoundRecords, markHits, type RecordHit } from "../view/knowledge";
import { usePage, useSelector } from "./hooks";
import { Icon } from "./Icon";
import { Problem } from "./Problem";
import { RecordForm } from "./RecordForm";
import { RecordText } from "./RecordText";
import { Sheet } from "./Sheet";

/** How long after the last key a search begins. */
const PAUSE_MS = 250;
const PAGE_SIZE = 20;
/** The server's limits. */
const MAX_RESULTS = 50;
const MAX_QUERY = 200;

/** What is searched for. It is kept while a record is read. */
interface Wanted {
  query: string;
  tag: string | null;
}

/** The knowledge base: search it, read a record, add one. */
export function KnowledgeSheet({ close }: { close: () => void }) {
  const page = usePage();
  const record = useSelector((state) => state.openRecord);
  const [isAdding, setAdding] = useState(false);
  const [wanted, setWanted] = useState<Wanted>({ query: "", tag: null });
  const [left, setLeft] = useState<string | null>(null);
  const search = useSearch(wanted);

  function open(id: string): void {
    setAdding(false);
    page.dispatch({ type: "record_opened", id });
  }

  function back(): void {
    setLeft(record);
    setAdding(false);
    page.dispatch({ type: "record_closed" });
  }

  function added(id: string): void {
    search.refresh();
    open(id);
  }

  function removed(id: string): void {
    search.refresh(id);
    back();
  }

  function leave(): void {
    page.dispatch({ type: "record_closed" });
    close();
  }

  const find = (tag: string) => {
    setWanted({ query: "", tag });
    back();
  };
  return (
    <Sheet title="Knowledge base" side="right" isWide close={leave}>
      {isAdding ? (
        <RecordForm added={added} back={back} />
      ) : record !== null ? (
        <RecordText key={record} id={record} back={back} removed={removed} find={find} />
      ) : (
        <Search search={search} wanted={wanted} change={setWanted} open={open} add={() => setAdding(true)} left={left} />
      )}
    </Sheet>
  );
}

interface SearchProps {
  search: SearchState;
  wanted: Wanted;
  change: (wanted: Wanted) => void;
  open: (id: string) => void;
  add: () => void;
  /** The record that was read before; it gets the focus again. */
  left: string | null;
}

function Search({ search, wanted, change, open, add, left }: SearchProps) {
  const { found, problem, isLoading, more, refresh } = search;
  const box = useRef<HTMLInputElement>(null);
  const isLeftShown = found?.results.some(({ id }) => id === left) ?? false;
  useEffect(() => {
    if (!isLeftShown) box.current?.focus();
  }, []);
  return (
    <>
      <div class="knowledge-head">
        <input
          ref={box}
          // Until the dialog is open, nothing in it can have the focus.
          autofocus
          class="input"
          type="search"
          aria-label="Search the knowledge base"
          placeholder="Search"
          autocomplete="off"
          maxLength={MAX_QUERY}
          value={wanted.query}
          onInput={(event) => change({ ...wanted, query: event.currentTarget.value })}
        />
        <button type="button" class="button" onClick={add}>
          <Icon name="plus" /> Add
        </button>
      </div>
      {wanted.tag !== null && (
        <button type="button" class="pill knowledge-tag" onClick={() => change({ ...wanted, tag: null })}>
          Tag: {wanted.tag} <Icon name="close" /><span class="visually-hidden">, show all</span>
        </button>
      )}
      <Problem text={problem} retry={() => refresh()} />
      <p class="quiet" role="status">{problem === "" && describeFound(found, wanted, isLoading)}</p>
      <ul class="list hits" aria-label="Records">
        {found?.results.map((hit) => <Hit key={hit.id} hit={hit} query={wanted.query} open={open} isLeft={hit.id === left} />)}
      </ul>
      {more !== null && <button type="button" class="button wide" onClick={more}>Show more</button>}
    </>
  );
}

function describeFound(found: FoundRecords | null, { query, tag }: Wanted, isLoading: boolean): string {
  if (found === null) return isLoading ? "Searching…" : "";
  const isSearch = query.trim() !== "" || tag !== null;
  const { results, total } = found;
  if (results.length === 0) {
    return isSearch ? "No record matches. Try other words." : "There are no records yet. Add one, or import files with “antiphon kb add”.";
  }
  if (results.length >= MAX_RESULTS && total > results.length) {
    return query.trim() === "" ? `The newest ${results.length} of ${total} records` : `The best ${results.length} of ${total} records`;
  }
  const count = query.trim() === "" ? total : results.length;
  return count === 1 ? "1 record" : `${count} records`;
}

function Hit({ hit, query, open, isLeft }: { hit: RecordHit; query: string; open: (id: string) => void; isLeft: boolean }) {
  const button = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    // Users go on where they left the list.
    if (isLeft) button.current?.focus();
  }, []);
  return (
    <li class="list-row">
      <button ref={button} type="button" class="list-main" onClick={() => open(hit.id)}>
        <span class="hit-title"><Marked text={hit.title || "Untitled"} query={query} /></span>
        <span class="quiet">{describeRecord(hit)}</span>
        {hit.snippet !== "" && <span class="hit-snippet"><Marked text={hit.snippet} query={query} /></span>}
        {hit.tags.length > 0 && (
          <span class="tags">{hit.tags.map((tag) => <span key={tag} class="tag">{tag}</span>)}</span>
        )}
      </button>
    </li>
  );
}

function Marked({ text, query }: { text: string; query: string }) {
  return <>{markHits(text, query).map(({ text: piece, isHit }, index) => (isHit ? <mark key={index}>{piece}</mark> : piece))}</>;
}

interface SearchState {
  found: FoundRecords | null;
  problem: string;
  isLoading: boolean;
  /** Shows more results; null if there are none. */
  more: (() => void) | null;
  /** Searches again, and forgets a record that was removed. */
  refresh: (removed?: string) => void;
}

/** Searches as the user types. An answer that comes after the next question is ignored. */
function useSearch({ query, tag }: Wanted): SearchState {
  const page = usePage();
  const isOnline = useSelector((state) => state.connection.state === "open");
  const [found, setFound] = useState<FoundRecords | null>(null);
  const [problem, setProblem] = useState("");
  const [isLoading, setLoading] = useState(true);
  const [limit, setLimit] = useState(PAGE_SIZE);
  const [attempt, setAttempt] = useState(0);
  const typed = useRef(query);

  useEffect(() => {
    let isWanted = true;
    const isTyped = typed.current !== query;
    typed.current = query;
    setLoading(true);
    const timer = setTimeout(() => {
      page.records.knowledge.search({ query, tag, limit }).then(
        (results) => {
          if (!isWanted) return;
          setFound(results);
          setProblem("");
          setLoading(false);
        },
        (error: Error) => {
          if (!isWanted) return;
          setFound(null);
          setProblem(error.message);
          setLoading(false);
        },
      );
    }, isTyped ? PAUSE_MS : 0);
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
    // Once the page is connected again, it searches again.
  }, [query, tag, limit, attempt, isOnline]);
  useEffect(() => setLimit(PAGE_SIZE), [query, tag]);

  const shown = found?.results.length ?? 0;
  const isMore = shown >= limit && shown < (found?.total ?? 0) && limit < MAX_RESULTS;
  return {
    found,
    problem,
    isLoading,
    more: isMore ? () => setLimit(Math.min(MAX_RESULTS, limit + PAGE_SIZE)) : null,
    refresh(removed) {
      if (removed !== undefined && found !== null) setFound(forget(found, removed));
      setAttempt(attempt + 1);
    },
  };
}

function forget({ results, total }: FoundRecords, id: string): FoundRecords {
  const rest = results.filter((hit) => hit.id !== id);
  return { results: rest, total: total - (results.length - rest.length) };
}
