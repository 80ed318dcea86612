import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Flyout as Shown } from "../view/state";
import { frameUrl } from "../view/urls";
import { usePage, useSelector } from "./hooks";
import { CopyButton } from "./CopyButton";
import { Icon } from "./Icon";

const NARROWEST = 20;
const WIDEST = 70;
const STEP = 4;

export function Flyout() {
  const flyout = useSelector((state) => state.flyouts.find((each) => each.key === state.openFlyout));
  return flyout === undefined ? null : <Panel flyout={flyout} />;
}

function Panel({ flyout }: { flyout: Shown }) {
  const page = usePage();
  const flyouts = useSelector((state) => state.flyouts);
  const panel = useRef<HTMLElement>(null);
  const [width, setWidth] = useState(42);

  useLayoutEffect(() => {
    panel.current?.style.setProperty("--flyout-width", `${width}vw`);
  }, [width]);

  const resize = (to: number) => setWidth(Math.min(WIDEST, Math.max(NARROWEST, to)));
  return (
    <aside ref={panel} class="flyout" aria-label={flyout.title}>
      <div
        class="divider"
        role="separator"
        tabIndex={0}
        aria-orientation="vertical"
        aria-label="Panel width"
        aria-valuenow={Math.round(width)}
        aria-valuemin={NARROWEST}
        aria-valuemax={WIDEST}
        onKeyDown={(event) => {
          if (event.key === "ArrowLeft") resize(width + STEP);
          if (event.key === "ArrowRight") resize(width - STEP);
        }}
        onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
        onPointerMove={(event) => {
          if (!event.currentTarget.hasPointerCapture(event.pointerId)) return;
          resize(((innerWidth - event.clientX) / innerWidth) * 100);
        }}
      />
      <header class="flyout-head">
        {flyouts.length > 1 ? (
          <select
            class="select"
            aria-label="Panel"
            value={flyout.key}
            onChange={(event) => page.dispatch({ type: "flyout_opened", flyout: event.currentTarget.value })}
          >
            {flyouts.map(({ key, title }) => <option key={key} value={key}>{title}</option>)}
          </select>
        ) : (
          <h2>{flyout.title}</h2>
        )}
        {flyout.type !== "browser" && <CopyButton text={() => flyout.content} label="Copy all" />}
        <button
          type="button"
          class="icon-button"
          aria-label="Close panel"
          title="Close (Escape)"
          onClick={() => page.dispatch({ type: "flyout_closed" })}
        >
          <Icon name="close" />
        </button>
      </header>
      {flyout.type === "browser" && <Browser key={flyout.key} address={flyout.content} title={flyout.title} />}
      {flyout.type === "code" && <Code text={flyout.content} language={flyout.language} />}
      {flyout.type === "terminal" && <Terminal text={flyout.content} />}
    </aside>
  );
}

function Browser({ address, title }: { address: string; title: string }) {
  const url = frameUrl(address);
  if (url === null) return <p class="flyout-note">This address cannot be shown: {address}</p>;
  return (
    <>
      {/* A page cannot detect that a frame stayed empty, so the user is told what to do then. */}
      <p class="flyout-note">
        <span>If this stays empty, the site does not allow embedding. Open it in a new tab instead.</span>
        <a class="button" href={url} target="_blank" rel="noopener noreferrer">Open {new URL(url).host} in a new tab</a>
      </p>
      <iframe
        class="frame"
        src={url}
        title={title}
        sandbox="allow-scripts allow-forms"
        referrerpolicy="no-referrer"
        allow=""
      />
    </>
  );
}

function Code({ text, language }: { text: string; language: string | null }) {
  const lines = text.replace(/\n$/, "").split("\n");
  return (
    <div class="listing" tabIndex={0} role="region" aria-label={language === null ? "Code" : `Code, ${language}`}>
      <pre class="line-numbers" aria-hidden="true">{lines.map((_, index) => index + 1).join("\n")}</pre>
      <pre class="lines"><code>{text}</code></pre>
    </div>
  );
}

function Terminal({ text }: { text: string }) {
  const box = useRef<HTMLPreElement>(null);
  useLayoutEffect(() => {
    if (box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  return <pre ref={box} class="terminal" tabIndex={0} role="log" aria-label="Terminal">{text}</pre>;
}
