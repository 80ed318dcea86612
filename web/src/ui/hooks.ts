/** The hooks that components share: the page's state, countdowns, the theme, modal dialogs. */

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

/**
 * Reads a part of the state; the component renders again only if that part changes. The selector must not depend on
 * props.
 */
export function useSelector<T>(selector: (state: PageState) => T): T {
  const page = usePage();
  return useMemo(() => page.select(selector), [page]).value;
}

/** Returns the milliseconds left, and renders again as they pass; 0 when the time is up. */
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

/** Returns the whole seconds left, and renders again with each of them; null if there is no such time. */
export function useSecondsLeft(until: number | null): number | null {
  const page = usePage();
  const read = () => (until === null ? null : Math.max(0, Math.ceil((until - page.now()) / 1000)));
  const [left, setLeft] = useState(read);
  useEffect(() => {
    setLeft(read());
    if (until === null) return undefined;
    const timer = setInterval(() => {
      const next = read();
      setLeft(next);
      if (next === 0) clearInterval(timer);
    }, TICK_MS);
    return () => clearInterval(timer);
  }, [until]);
  return left;
}

/** Returns the chosen theme, or the one that matches the system's light or dark mode. */
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

/** Shows the dialog as a modal. Its element is removed without being closed, so the focus is restored here. */
export function useModal(dialog: RefObject<HTMLDialogElement | null>): void {
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
}
