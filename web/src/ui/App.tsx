import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { Banners } from "./Banners";
import { Confirmation } from "./Confirmation";
import { usePage, usePart } from "./context";
import { Dock } from "./Dock";
import { Flyout } from "./Flyout";
import { Header, type SheetName } from "./Header";
import { HistorySheet } from "./HistorySheet";
import { listenToKeys } from "./keyboard";
import { KeysSheet } from "./KeysSheet";
import { Notices } from "./Notices";
import { Reminders } from "./Reminders";
import { SettingsSheet } from "./SettingsSheet";
import { StatusSheet } from "./StatusSheet";
import { Thread } from "./Thread";
import { Welcome } from "./Welcome";

const SHEETS = { history: HistorySheet, status: StatusSheet, settings: SettingsSheet, keys: KeysSheet } as const;

export function App() {
  const page = usePage();
  const isEmpty = usePart((state) => state.items.length === 0);
  const [sheet, setSheet] = useState<SheetName | null>(null);
  const { theme, reducedMotion } = page.settings.value;

  useLayoutEffect(() => {
    document.documentElement.dataset["theme"] = theme;
    document.documentElement.dataset["motion"] = reducedMotion ? "reduced" : "";
  }, [theme, reducedMotion]);
  useEffect(() => listenToKeys(page, () => setSheet("keys")), [page]);

  const Open = sheet === null ? null : SHEETS[sheet];
  return (
    <div class="page">
      <Header open={setSheet} />
      <Notices />
      <main class="main">
        <Banners />
        <Reminders />
        {isEmpty ? <Welcome /> : <Thread />}
        <Dock hasOrb={!isEmpty} />
      </main>
      <Flyout />
      <Confirmation />
      {Open !== null && <Open close={() => setSheet(null)} />}
    </div>
  );
}
