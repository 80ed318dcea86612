/** A program that uses the types of the embeddable client, as they are served. It is compiled, and never run. */

import {
  Antiphon,
  type AntiphonEvents,
  type AntiphonOptions,
  type ConfirmationRequestMessage,
  type Connection,
  MAX_TEXT,
  MicrophoneError,
  type ServerMessage,
} from "../../../src/antiphon/server/static/antiphon-client.js";

const options: AntiphonOptions = { url: "wss://example.org/ws", token: "apn_…", mode: "voice", bargeIn: false };
const antiphon = new Antiphon(options);

const stop: () => void = antiphon.on("response", ({ text, turn, citations }) => {
  const shown: string = text.slice(0, MAX_TEXT);
  const number: number | null = turn;
  console.log(shown, number, citations.map(({ title }) => title));
});
antiphon.on("confirmation_request", (request: ConfirmationRequestMessage) => {
  antiphon.confirm(request.confirmation_token, confirm(request.preview));
});
antiphon.on("connection", (now: Connection) => {
  if (now.state === "waiting") console.log(now.retryInMs);
});
antiphon.on("message", (message: ServerMessage) => {
  if (message.type === "turn_metrics") console.log(message.total_ms);
});
antiphon.startVoice().catch((error: unknown) => {
  if (error instanceof MicrophoneError && error.code === "denied") stop();
});
antiphon.settings({ volume: 50 });
const names: (keyof AntiphonEvents)[] = ["response", "playing"];
console.log(names, antiphon.conversationId?.length);

// @ts-expect-error There is no such event.
antiphon.on("respons", () => undefined);
// @ts-expect-error The server has no such mode.
new Antiphon({ mode: "video" });
// @ts-expect-error It is a method of messages.
antiphon.say(3);
// @ts-expect-error What the module does not export has no type either.
export type { createEmitter } from "../../../src/antiphon/server/static/antiphon-client.js";
