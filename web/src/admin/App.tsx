import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { loadSettings, SYSTEM_THEMES } from "../view/settings";
import type { Api, Status } from "./api";
import { type Admin, AdminContext, useLoaded } from "./context";
import { count } from "./format";
import { linkTo, readRoute, type Route, type ViewName, VIEWS } from "./routes";
import { AuditView } from "./views/AuditView";
import { ConversationsView } from "./views/ConversationsView";
import { EnergyView } from "./views/EnergyView";
import { KnowledgeView } from "./views/KnowledgeView";
import { SessionsView } from "./views/SessionsView";
import { TimelineView } from "./views/TimelineView";
import { TokensView } from "./views/TokensView";
import { ToolsView } from "./views/ToolsView";
import { UsersView } from "./views/UsersView";

/** Where the tab keeps the admin token, apart from the token of the page that people talk to. */
const TOKEN = "antiphon.admin";
const LIGHT = "(prefers-color-scheme: light)";
const SHOWN_MS = 6_000;

interface AppProps {
  makeApi: (token: string) => Api;
  local: Storage | null;
  tab: Storage | null;
}

export function App({ makeApi, local, tab }: AppProps) {
  const [token, setToken] = useState(() => readToken(tab));
  const [refusal, setRefusal] = useState("");
  const [hasEntered, setEntered] = useState(false);
  useTheme(local);

  function change(next: string | null, why = ""): void {
    keepToken(tab, next);
    setToken(next);
    setRefusal(why);
  }

  function enter(given: string): void {
    setEntered(true);
    change(given);
  }

  const api = useMemo(() => (token === null ? null : makeApi(token)), [token]);
  if (api === null) return <SignIn refusal={refusal} enter={enter} />;
  return <Desk api={api} hasEntered={hasEntered} signOut={() => change(null)} refuse={(why) => change(null, why)} />;
}

/** The operator's page needs a token of its own, also where the other page needs none. */
function SignIn({ refusal, enter }: { refusal: string; enter: (token: string) => void }) {
  const [token, setToken] = useState("");
  useLayoutEffect(() => {
    document.title = "Sign in · Antiphon admin";
  }, []);
  return (
    <main class="sign-in">
      <form
        class="sign-in-box"
        onSubmit={(event) => {
          event.preventDefault();
          if (token.trim() !== "") enter(token.trim());
        }}
      >
        <h1>Antiphon admin</h1>
        {refusal !== "" && <p class="trouble" role="alert">{refusal}</p>}
        <p class="faint" id="token-help">
          Create an admin token on the server with <code>antiphon token new --admin</code>. It is kept in this tab only.
        </p>
        <label for="token">Admin token</label>
        <input
          id="token"
          class="field"
          type="password"
          autocomplete="off"
          aria-describedby="token-help"
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        <button type="submit" class="button primary">Sign in</button>
      </form>
    </main>
  );
}

interface DeskProps {
  api: Api;
  /** Whether the operator has just signed in. */
  hasEntered: boolean;
  signOut: () => void;
  refuse: (why: string) => void;
}

function Desk({ api, hasEntered, signOut, refuse }: DeskProps) {
  const hasMoved = useRef(hasEntered);
  const route = useRoute(() => {
    hasMoved.current = true;
  });
  const [isLive, setLive] = useState(true);
  const [isReachable, setReachable] = useState(true);
  const [told, setTold] = useState("");
  const main = useRef<HTMLElement>(null);
  const admin = useMemo<Admin>(() => ({ api, isLive, refuse, announce, setReachable, takesFocus: () => hasMoved.current }), [api, isLive]);

  /** The button that was pressed is often gone afterwards, and the focus with it. */
  function announce(text: string): void {
    setTold(text);
    main.current?.querySelector("h1")?.focus({ preventScroll: true });
  }

  useEffect(() => {
    if (told === "") return undefined;
    const timer = setTimeout(() => setTold(""), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [told]);

  return (
    <AdminContext.Provider value={admin}>
      <div class="desk">
        <a
          class="skip"
          href="#main"
          onClick={(event) => {
            event.preventDefault();
            main.current?.focus();
          }}
        >
          Skip to the content
        </a>
        <header class="desk-top">
          <a class="desk-brand" href={linkTo("sessions")}>Antiphon <span class="faint">admin</span></a>
          <ServerLine />
          <div class="desk-buttons">
            <button type="button" class="small-button" data-paused={!isLive} onClick={() => setLive(!isLive)}>
              {isLive ? "Pause updates" : "Resume updates"}
            </button>
            <button type="button" class="small-button" onClick={signOut}>Sign out</button>
          </div>
        </header>
        <nav class="desk-nav" aria-label="Views">
          <ul>
            {(Object.keys(VIEWS) as ViewName[]).map((view) => (
              <li key={view}>
                <a href={linkTo(view)} aria-current={route.view === view ? (route.id === null ? "page" : "true") : undefined}>{VIEWS[view]}</a>
              </li>
            ))}
          </ul>
        </nav>
        <main class="desk-main" id="main" ref={main} tabIndex={-1}>
          <div role="alert">
            {!isReachable && <p class="trouble">The server cannot be reached. This page tries again by itself.</p>}
          </div>
          <p class="told" role="status" aria-live="polite">{told}</p>
          <View route={route} />
        </main>
      </div>
    </AdminContext.Provider>
  );
}

function View({ route: { view, id, parameters } }: { route: Route }) {
  switch (view) {
    case "sessions":
      return <SessionsView />;
    case "conversations":
      return id === null ? <ConversationsView user={parameters["user"] ?? ""} key={parameters["user"] ?? ""} /> : <TimelineView id={id} key={id} />;
    case "audit":
      return <AuditView search={parameters} key={JSON.stringify(parameters)} />;
    case "users":
      return <UsersView />;
    case "tokens":
      return <TokensView />;
    case "energy":
      return <EnergyView />;
    case "tools":
      return <ToolsView />;
    case "knowledge":
      return <KnowledgeView />;
  }
}

/** Which server answers. */
function ServerLine() {
  const { data } = useLoaded<Status>((api) => api.status(), "status");
  if (data === null) return <p class="desk-server" />;
  return (
    <p class="desk-server">
      <span><span class="faint">Signed in as</span> {data.user}</span>
      <span><span class="faint">Node</span> <code>{data.node}</code></span>
      <span><span class="faint">Version</span> {data.version}</span>
      <span>{count(data.connected, "client")} <span class="faint">connected here</span></span>
    </p>
  );
}

function useRoute(whenMoved: () => void): Route {
  const [hash, setHash] = useState(() => location.hash);
  useEffect(() => {
    const follow = () => {
      whenMoved();
      setHash(location.hash);
    };
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return useMemo(() => readRoute(hash), [hash]);
}

/** The theme is the one that was chosen on the other page. */
function useTheme(local: Storage | null): void {
  useLayoutEffect(() => {
    const { theme, reducedMotion } = loadSettings(local);
    const query = matchMedia(LIGHT);
    const follow = () => {
      document.documentElement.dataset["theme"] = theme === "system" ? SYSTEM_THEMES[query.matches ? "light" : "dark"] : theme;
    };
    document.documentElement.dataset["motion"] = reducedMotion ? "reduced" : "";
    query.addEventListener("change", follow);
    follow();
    return () => query.removeEventListener("change", follow);
  }, []);
}

/** Storage may be forbidden; then the token lasts until the page is closed. */
function readToken(tab: Storage | null): string | null {
  try {
    return tab?.getItem(TOKEN) ?? null;
  } catch {
    return null;
  }
}

function keepToken(tab: Storage | null, token: string | null): void {
  try {
    if (token === null) tab?.removeItem(TOKEN);
    else tab?.setItem(TOKEN, token);
  } catch {
    // It is in memory.
  }
}
