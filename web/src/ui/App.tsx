import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { Banners } from "./Banners";
import { Confirmation } from "./Confirmation";
import { usePage, useSelector, useTheme } from "./hooks";
import { Dock } from "./Dock";
import { Flyout } from "./Flyout";
import { Header, type SheetName } from "./Header";
import { HistorySheet } from "./HistorySheet";
import { listenToKeys } from "./keyboard";
import { KeysSheet } from "./KeysSheet";
import { KnowledgeSheet } from "./KnowledgeSheet";
import { Notices } from "./Notices";
import { Reminders, Ringer } from "./Reminders";
import { SettingsSheet } from "./SettingsSheet";
import { StatusSheet } from "./StatusSheet";
import { Thread } from "./Thread";
import type { PageState } from "../view/state";
import { Viewer } from "./Viewer";
import { Welcome } from "./Welcome";

const SHEETS = {
  history: HistorySheet, knowledge: KnowledgeSheet, status: StatusSheet, settings: SettingsSheet, keys: KeysSheet,
} as const;

/** Whether there is something to read. During a call, event lines alone do not count. */
function hasWords({ items, queue, talk }: PageState): boolean {
  const counted = talk === "hands_free" ? items.filter((item) => item.kind !== "event") : items;
  return counted.length + queue.length > 0;
}

export function App() {
  const page = usePage();
  const hasThread = useSelector(hasWords);
  const isReading = useSelector((state) => state.openRecord !== null);
  const [sheet, setSheet] = useState<SheetName | null>(null);
  const { reducedMotion } = page.settings.value;
  const theme = useTheme();

  useLayoutEffect(() => {
    document.documentElement.dataset["theme"] = theme;
    document.documentElement.dataset["motion"] = reducedMotion ? "reduced" : "";
  }, [theme, reducedMotion]);
  useEffect(() => {
    // A record can also be opened from the thread.
    if (isReading) setSheet("knowledge");
  }, [isReading]);
  useEffect(() => listenToKeys(page, () => setSheet("keys")), [page]);

  const Open = sheet === null ? null : SHEETS[sheet];
  return (
    <div class="page">
      <Header open={setSheet} />
      <Notices />
      <main class="main">
        <Banners />
        <Reminders />
        {hasThread ? <Thread /> : <Welcome />}
        <Dock hasOrb={hasThread} showStatus={() => setSheet("status")} />
      </main>
      <Ringer />
      <Flyout />
      <Viewer />
      <Confirmation />
      {Open !== null && <Open close={() => setSheet(null)} />}
    </div>
  );
}
