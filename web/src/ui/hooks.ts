/** The hooks that components share: the page's state, the time, the theme, modal dialogs. */

import { createContext, type RefObject } from "preact";
import { useContext, useEffect, useMemo, useState } from "preact/hooks";
import type { Page } from "../view/page";
import { SYSTEM_THEMES, type Theme } from "../view/settings";
import type { PageState } from "../view/state";

const TICK_MS = 250;
const LIGHT = "(prefers-color-scheme: light)";

export const PageContext = createContext<Page | null>(null);

export function usePage(): Page {
  return useContext(PageContext)!;
}

/** A part of the state; the component is drawn again only if that part changes. `part` must not depend on props. */
export function useSelector<T>(selector: (state: PageState) => T): T {
  const page = usePage();
  return useMemo(() => page.select(selector), [page]).value;
}

/** Milliseconds until then, drawn again as they pass; 0 when it is over. */
export function useCountdown(until: number, whenOver: () => void): number {
  const page = usePage();
  const [left, setLeft] = useState(() => Math.max(0, until - page.now()));
  useEffect(() => {
    const tick = () => {
      const next = Math.max(0, until - page.now());
      setLeft(next);
      if (next === 0) {
        clearInterval(timer);
        whenOver();
      }
    };
    const timer = setInterval(tick, TICK_MS);
    tick();
    return () => clearInterval(timer);
  }, [until]);
  return left;
}

/** The theme to wear: the chosen one, or one that is as light or dark as the system is now. */
export function useTheme(): Theme {
  const { theme } = usePage().settings.value;
  const [isLight, setLight] = useState(() => matchMedia(LIGHT).matches);
  useEffect(() => {
    const query = matchMedia(LIGHT);
    const follow = () => setLight(query.matches);
    query.addEventListener("change", follow);
    follow();
    return () => query.removeEventListener("change", follow);
  }, []);
  return theme === "system" ? SYSTEM_THEMES[isLight ? "light" : "dark"] : theme;
}

/** Shows the dialog above everything, and keeps the focus in it. Its element is gone before it could be closed, so the focus is given back here. */
export function useModal(dialog: RefObject<HTMLDialogElement | null>): void {
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
}
