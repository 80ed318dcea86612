import { useEffect, useState } from "preact/hooks";
import { SYSTEM_THEMES, type Theme } from "../view/settings";
import { usePage } from "./context";

const LIGHT = "(prefers-color-scheme: light)";

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
