/** What the views share, and how they load what they show. */

import { createContext } from "preact";
import { useCallback, useContext, useEffect, useRef, useState } from "preact/hooks";
import { type Api, type Page, RequestError } from "./api";

export interface Admin {
  api: Api;
  /** Whether what is shown is refreshed by itself. */
  isLive: boolean;
  /** Whether a view that opens takes the focus: not when the page was just loaded, but when the operator came to it. */
  takesFocus(): boolean;
  /** Tells screen readers, and everybody else for a moment, what was done. */
  announce(text: string): void;
  /** The token is not accepted any more, or never was. */
  refuse(message: string): void;
  /** Whether the server can be reached, as the last request found. */
  setReachable(isReachable: boolean): void;
}

export const AdminContext = createContext<Admin | null>(null);

export function useAdmin(): Admin {
  return useContext(AdminContext)!;
}

export const REFRESH_MS = 5_000;

export interface Loaded<T> {
  /** Null before the first answer. What was loaded stays while it is refreshed, and if that fails. */
  data: T | null;
  /** Why it could not be loaded; empty if it could. */
  problem: string;
  /** When the data came. */
  at: number;
  reload(): void;
}

/**
 * Loads data, again when `key` changes, and every few seconds if it `isRefreshed` and the page is live and in view. An
 * answer that comes after the next request is ignored.
 */
export function useLoaded<T>(load: (api: Api) => Promise<T>, key: string, isRefreshed = true): Loaded<T> {
  const { api, isLive, refuse, setReachable } = useAdmin();
  const [state, setState] = useState<{ key: string; data: T | null; problem: string; at: number }>({ key, data: null, problem: "", at: 0 });
  const [attempt, setAttempt] = useState(0);
  const newest = useRef(load);
  newest.current = load;

  const request = useRef(0);
  const fetchOnce = useCallback(() => {
    const number = ++request.current;
    return newest.current(api).then(
      (data) => {
        if (number !== request.current) return;
        setReachable(true);
        setState({ key, data, problem: "", at: Date.now() });
      },
      (error: unknown) => {
        if (number !== request.current) return;
        if (error instanceof RequestError && error.isRefused) refuse(error.message);
        setReachable(!(error instanceof RequestError && error.status === 0));
        const problem = error instanceof Error ? error.message : String(error);
        setState((before) => ({ ...(before.key === key ? before : { key, data: null, at: 0 }), problem }));
      },
    );
  }, [api, key]);

  useEffect(() => {
    void fetchOnce();
    return () => {
      request.current++;
    };
  }, [fetchOnce, attempt]);
  useEffect(() => {
    if (!isRefreshed || !isLive) return undefined;
    let timer: ReturnType<typeof setTimeout>;
    let isOver = false;
    const wait = () => {
      timer = setTimeout(() => {
        if (document.hidden) wait();
        else void fetchOnce().then(() => isOver || wait());
      }, REFRESH_MS);
    };
    wait();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [fetchOnce, isRefreshed, isLive]);

  const reload = useCallback(() => setAttempt((before) => before + 1), []);
  return { data: state.key === key ? state.data : null, problem: state.key === key ? state.problem : "", at: state.at, reload };
}

export interface LoadedPages<T> extends Loaded<T[]> {
  /** Loads the next page; null if there is none. */
  more: (() => void) | null;
}

/** Loads a list page by page. As long as only the first page is shown, it is refreshed. */
export function useLoadedPages<T>(load: (api: Api, before: string | null) => Promise<Page<T>>, key: string, isRefreshed = true): LoadedPages<T> {
  const { api, refuse } = useAdmin();
  const [rest, setRest] = useState<{ key: string; rows: T[]; next: string | null } | null>(null);
  const [problem, setProblem] = useState("");
  const added = rest?.key === key ? rest : null;
  const first = useLoaded((from) => load(from, null), key, isRefreshed && added === null);
  const next = added === null ? (first.data?.next ?? null) : added.next;

  function more(): void {
    load(api, next).then(
      (page) => {
        setProblem("");
        setRest({ key, rows: [...(added?.rows ?? []), ...page.rows], next: page.next });
      },
      (error: unknown) => {
        if (error instanceof RequestError && error.isRefused) refuse(error.message);
        setProblem(error instanceof Error ? error.message : String(error));
      },
    );
  }
  return {
    data: first.data === null ? null : [...first.data.rows, ...(added?.rows ?? [])],
    problem: first.problem || problem,
    at: first.at,
    reload() {
      setRest(null);
      first.reload();
    },
    more: next === null ? null : more,
  };
}
