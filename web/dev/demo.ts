/**
 * The page with a scripted server: `npm run dev`, then open /dev/demo.html?scene=busy&theme=rose. Not part of the build.
 * Scenes: welcome, busy, confirm, code, terminal, browser, lost, blocked, token.
 */

import { busyScene, SCENES } from "./scenes";

const query = new URLSearchParams(location.search);
const scene = query.get("scene") ?? "busy";
const theme = query.get("theme");
const open = query.get("open");

class ScriptedSocket {
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  binaryType = "blob";
  bufferedAmount = 0;
  readyState = 1;
  #n = 0;

  constructor() {
    setTimeout(() => this.#begin(), 30);
  }

  #begin(): void {
    this.onopen?.();
    if (scene === "token") {
      this.onclose?.({ code: 4401, reason: "" });
      return;
    }
    this.tell({ type: "state", state: "idle" });
    this.tell({ type: "session", session_id: "s", conversation_id: "c1", resume: "h", resumed: false, mode: "text", tools_version: "1", expires_in_s: 7200, energy: { voice: 2, text: 2 } });
    for (const message of SCENES[scene] ?? busyScene) this.tell(message);
    if (scene === "lost") setTimeout(() => this.onclose?.({ code: 1006, reason: "" }), 200);
  }

  tell(message: object): void {
    this.#n += 1;
    this.onmessage?.({ data: JSON.stringify({ ...message, n: this.#n }) });
  }

  send(frame: string | Uint8Array): void {
    if (typeof frame !== "string") return;
    const message = JSON.parse(frame) as { type: string; text?: string; t?: number };
    if (message.type === "ping") this.tell({ type: "pong", t: message.t });
    if (message.type !== "text_message") return;
    this.tell({ type: "state", state: "processing" });
    this.tell({ type: "transcript", text: message.text, is_final: true });
    const words = `You wrote “${message.text}”. This is a scripted server, so **that** is all I know.`.split(/(?<= )/);
    words.forEach((text, index) => setTimeout(() => this.tell({ type: "response_chunk", text, is_first: index === 0 }), 60 * index));
    setTimeout(() => {
      this.tell({ type: "response", text: words.join("") });
      this.tell({ type: "state", state: "idle" });
    }, 60 * words.length);
  }

  close(): void {
    this.readyState = 3;
  }
}

const RECORDS: Record<string, unknown> = {
  "/api/voices": { voices: [{ id: "joe", name: "Joe", language: "en-US", current: true }] },
  "/api/conversations": {
    conversations: [
      { id: "c1", title: "Weather for the weekend in Lisbon", created_ms: Date.now() - 4e5, updated_ms: Date.now() - 3e5 },
      { id: "c2", title: "A regular expression for dates", created_ms: Date.now() - 9e7, updated_ms: Date.now() - 9e7 },
    ],
    next: null,
  },
  "/api/calls": {
    calls: [
      {
        id: "k1",
        conversation_id: "c1",
        started_ms: Date.now() - 7e6,
        duration_ms: 184000,
        summary: "Asked for the weather in Lisbon and a reminder to pack an umbrella. Open: whether to book the train.",
        models: ["cascade"],
        transcript: [{ role: "user", content: "What is the weather in Lisbon?", spoken: true, at: null }],
      },
    ],
  },
};

Object.assign(window, {
  WebSocket: ScriptedSocket,
  fetch: async (url: URL) => new Response(JSON.stringify(RECORDS[url.pathname.replace("/dev", "")] ?? {}), { status: 200 }),
});
if (theme !== null) localStorage.setItem("antiphon.settings", JSON.stringify({ theme, timestamps: query.has("times") }));
sessionStorage.clear();

await import("../src/main");
if (open !== null) {
  const labels: Record<string, string> = { history: "Conversations and calls", status: "Models, latency and notices", settings: "Settings", keys: "Keyboard shortcuts" };
  setTimeout(() => document.querySelector<HTMLButtonElement>(`[aria-label="${labels[open]}"]`)?.click(), 300);
}
