import { createContext } from "preact";
import { useContext, useMemo } from "preact/hooks";
import type { Page } from "../view/page";
import type { PageState } from "../view/state";

export const PageContext = createContext<Page | null>(null);

export function usePage(): Page {
  return useContext(PageContext)!;
}

/** A part of the state; the component is drawn again only if that part changes. `part` must not depend on props. */
export function usePart<T>(part: (state: PageState) => T): T {
  const page = usePage();
  return useMemo(() => page.select(part), [page]).value;
}
