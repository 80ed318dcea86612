import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { toMarkdown } from "../view/format";
import { isOfNewestTurn, type PageState } from "../view/state";
import { usePage, useSelector } from "./hooks";
import { CopyButton } from "./CopyButton";
import { Icon } from "./Icon";
import { QueuedTurn, Row } from "./Row";

/** Scrolled to within this distance of the end counts as being at the end. */
const NEAR_PX = 64;

export function Thread() {
  const page = usePage();
  const items = useSelector((state) => state.items);
  const queue = useSelector((state) => state.queue);
  const isThinking = useSelector(isWaitingForWords);
  const { timestamps } = page.settings.value;
  const scroller = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const seen = useRef(items.length);
  const [hasNew, setNew] = useState(false);

  function toEnd(): void {
    const box = scroller.current;
    if (box !== null) box.scrollTop = box.scrollHeight;
  }

  useLayoutEffect(() => {
    const last = items.at(-1);
    // Users want to see what they have just sent.
    const isOwn = last?.kind === "user" && last.status === "sending" && items.length > seen.current;
    if (isAtEnd.current || isOwn) toEnd();
    else if (items.length > seen.current) setNew(true);
    seen.current = items.length;
  }, [items, queue]);

  // Its height changes with the flyout, with notices, with a phone's keyboard and when pictures load.
  useEffect(() => {
    let height = scroller.current?.clientHeight ?? 0;
    const observer = new ResizeObserver(() => {
      const box = scroller.current;
      if (box === null) return;
      // The line at the lower edge stays there, so that users do not lose their place.
      const lost = height - box.clientHeight;
      height = box.clientHeight;
      if (isAtEnd.current) toEnd();
      else if (lost !== 0) box.scrollTop += lost;
    });
    if (scroller.current !== null) observer.observe(scroller.current);
    if (scroller.current?.firstElementChild) observer.observe(scroller.current.firstElementChild);
    return () => observer.disconnect();
  }, []);

  return (
    <div class="thread-wrap">
      <div
        ref={scroller}
        class="thread"
        tabIndex={0}
        role="region"
        aria-label="Conversation"
        onScroll={({ currentTarget: box }) => {
          isAtEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX;
          if (isAtEnd.current) setNew(false);
        }}
      >
        <div class="column">
          <div class="thread-tools">
            <CopyButton text={() => toMarkdown(page.state.value.items)} label="Copy conversation" />
            <button type="button" class="quiet-button" onClick={() => download(toMarkdown(page.state.value.items))}>
              <Icon name="download" />
              <span>Download</span>
            </button>
          </div>
          <div role="log" aria-live="polite" aria-relevant="additions" class="log">
            {items.map((item) => <Row key={item.key} item={item} hasTime={timestamps} />)}
          </div>
          <div class="thinking" data-on={isThinking} aria-hidden="true">
            <i /><i /><i />
          </div>
          {queue.length > 0 && (
            <div class="log queue" role="log" aria-label="Queued messages">
              {queue.map((message) => <QueuedTurn key={message.id} message={message} />)}
            </div>
          )}
        </div>
      </div>
      {hasNew && (
        <button
          type="button"
          class="new-messages"
          onClick={() => {
            toEnd();
            setNew(false);
          }}
        >
          <Icon name="down" /> New messages
        </button>
      )}
    </div>
  );
}

/** Whether an answer is being generated and there is nothing new to read yet. */
function isWaitingForWords(state: PageState): boolean {
  const last = state.items.at(-1);
  return state.server === "processing" && !(last?.kind === "assistant" && isOfNewestTurn(state, last));
}

function download(text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/markdown" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `conversation-${new Date().toISOString().slice(0, 10)}.md`;
  link.click();
  // The browser may not have started to read it yet.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
