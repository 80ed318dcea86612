/** Server messages as tests write them, and the thread that results. */

import type { ServerMessage } from "../../src/client/wire";
import { type LocalEvent, reduce, type ViewEvent } from "../../src/view/reduce";
import { initialState, type Item, type PageState } from "../../src/view/state";

export const NOW = 1_000_000;

/** Irrelevant fields may be omitted, as a basic server omits them. */
export type TestMessage = { type: ServerMessage["type"] } & Record<string, unknown>;

export function reduceAll(events: readonly (TestMessage | LocalEvent)[], from: PageState = initialState(), now = NOW): PageState {
  return events.reduce((state, event) => reduce(state, event as ViewEvent, now), from);
}

/** The thread in short form: kind, status and text of each item. */
export function outline(state: PageState): string[] {
  return state.items.map(describe);
}

function describe(item: Item): string {
  switch (item.kind) {
    case "user":
      return `user ${item.status}: ${item.continuation ?? item.text}`;
    case "assistant":
      return `assistant ${item.status}: ${item.text}`;
    case "tool":
      return `tool ${item.status}: ${item.name}`;
    case "event":
      return `event: ${item.text}`;
    case "flyout":
      return `flyout: ${item.title}`;
    case "image":
      return `image: ${item.url}`;
  }
}

export const open = (session: "first" | "resumed" | "new", reason: string | null = null): LocalEvent => ({
  type: "connection",
  connection: { state: "open", session, reason },
});

/** The same message, as a server that numbers its turns sends it. */
export const inTurn = (turn: number, message: TestMessage): TestMessage => ({ ...message, turn });
export const transcript = (text: string): TestMessage => ({ type: "transcript", text, is_final: true });
export const interim = (text: string): TestMessage => ({ type: "transcript", text, is_final: false });
export const chunk = (text: string, is_first = false): TestMessage => ({ type: "response_chunk", text, is_first });
export const response = (text: string): TestMessage => ({ type: "response", text });
export const serverState = (state: string): TestMessage => ({ type: "state", state });
export const played = (playedMs: number, playing = true, receivedMs = playedMs, complete = false): LocalEvent => ({
  type: "playing",
  playing: { playing, turn: 1, playedMs, receivedMs, complete, ducked: false, held: false },
});
