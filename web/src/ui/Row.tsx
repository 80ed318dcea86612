import { useMemo, useState } from "preact/hooks";
import type { QueuedText } from "../client/antiphon";
import type { AssistantItem, FlyoutItem, ImageItem, Item, UserItem } from "../view/state";
import { imageUrl } from "../view/urls";
import { usePage } from "./hooks";
import { Icon } from "./Icon";
import { Markdown } from "./Markdown";
import { Sources } from "./Sources";
import { ToolCard } from "./ToolCard";

/** One item in the thread. It renders again only if the item changes. */
export function Row({ item, hasTime }: { item: Item; hasTime: boolean }) {
  return useMemo(
    () => (
      <div class={`row row-${item.kind}`}>
        {drawItem(item)}
        {hasTime && item.at !== null && <Time at={item.at} />}
      </div>
    ),
    [item, hasTime],
  );
}

function drawItem(item: Item) {
  switch (item.kind) {
    case "user":
      return <UserTurn item={item} />;
    case "assistant":
      return <Answer item={item} />;
    case "tool":
      return <ToolCard item={item} />;
    case "image":
      return <Picture item={item} />;
    case "flyout":
      return <FlyoutChip item={item} />;
    case "event":
      return <p class="event">{item.text}</p>;
  }
}

function Time({ at }: { at: number }) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return null;
  const isToday = date.toDateString() === new Date().toDateString();
  const day = isToday ? {} : ({ day: "numeric", month: "short" } as const);
  const text = date.toLocaleString(undefined, { hour: "2-digit", minute: "2-digit", ...day });
  return <time class="time" dateTime={date.toISOString()}>{text}</time>;
}

function UserTurn({ item }: { item: UserItem }) {
  const page = usePage();
  const isOpen = item.status === "interim" || item.continuation !== null;
  return (
    <div class="bubble" data-status={item.status} aria-busy={isOpen}>
      <span class="visually-hidden">You: </span>
      <span class="bubble-text">{item.continuation ?? item.text}</span>
      {item.status === "sending" && <span class="note">Sending…</span>}
      {(item.status === "unsent" || item.status === "failed") && (
        <span class="bubble-foot">
          <span class="problem">{item.reason}</span>
          <button type="button" class="button" onClick={() => page.retry(item.key)}>Try again</button>
        </span>
      )}
    </div>
  );
}

/** A typed message that is queued behind the current answer. */
export function QueuedTurn({ message }: { message: QueuedText }) {
  const page = usePage();
  return (
    <div class="row row-user">
      <div class="bubble" data-status="queued">
        <span class="visually-hidden">You: </span>
        <span class="bubble-text">{message.text}</span>
        <span class="bubble-foot">
          <span class="note">Queued</span>
          <button type="button" class="quiet-button" onClick={() => page.unqueue(message.id)}>Unsend</button>
        </span>
      </div>
    </div>
  );
}

function Answer({ item }: { item: AssistantItem }) {
  const isCut = item.status === "interrupted" || item.status === "dropped";
  return (
    <div class="answer" data-status={item.status} aria-busy={item.status === "streaming"}>
      <span class="visually-hidden">Antiphon: </span>
      <Markdown text={item.text} heardChars={item.heardChars} />
      <Sources citations={item.citations} />
      {isCut && <p class="note cut">{describeCut(item)}</p>}
    </div>
  );
}

function describeCut({ status, heardChars }: AssistantItem): string {
  if (status === "dropped") return "Not finished";
  return heardChars === null ? "Interrupted" : "Interrupted. The dotted part was not heard";
}

function Picture({ item }: { item: ImageItem }) {
  const page = usePage();
  const [isBroken, setBroken] = useState(false);
  const url = imageUrl(item.url, location.href);
  if (url === null) return <p class="event">This picture was not loaded because its address is not safe.</p>;
  return (
    <figure class="picture">
      {isBroken ? (
        <div class="picture-broken">
          <p class="problem">This picture could not be loaded.</p>
          <button type="button" class="button" onClick={() => setBroken(false)}>Try again</button>
        </div>
      ) : (
        <button
          type="button"
          class="picture-button"
          aria-label={`Show in full size: ${item.caption ?? "picture"}`}
          onClick={() => page.dispatch({ type: "image_opened", key: item.key })}
        >
          <img
            src={url}
            alt={item.caption ?? "Image without a description"}
            loading="lazy"
            referrerPolicy="no-referrer"
            onError={() => setBroken(true)}
          />
        </button>
      )}
      {item.caption !== null && <figcaption>{item.caption}</figcaption>}
    </figure>
  );
}

function FlyoutChip({ item }: { item: FlyoutItem }) {
  const page = usePage();
  return (
    <button type="button" class="chip" onClick={() => page.dispatch({ type: "flyout_opened", flyout: item.flyout })}>
      <Icon name="panel" />
      <span class="chip-text">{item.title}</span>
      <span class="chip-more">Open</span>
    </button>
  );
}
