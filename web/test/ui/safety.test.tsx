// @vitest-environment happy-dom
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { act } from "preact/test-utils";
import { renderApp, type RenderedApp } from "./render";
import type { TestMessage } from "../view/messages";

const PAYLOADS = [
  "<script>window.pwned = 1</script>",
  "<img src=x onerror=window.pwned=1>",
  '"><svg onload=window.pwned=1>',
  "[x](javascript:window.pwned=1)",
  "javascript:window.pwned=1",
  "![x](javascript:window.pwned=1)",
  "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
  "```html\n<script>window.pwned=1</script>\n```",
  "| <b onclick=pwned=1>a</b> |\n|---|\n| <style>*{display:none}</style> |",
  "data:text/html,<script>window.pwned=1</script>",
];

/** Every server message, with the payload in every text field. */
function everywhere(evil: string): TestMessage[] {
  return [
    { type: "transcript", text: evil, is_final: true },
    { type: "response_chunk", text: evil, is_first: true },
    { type: "response", text: evil, citations: [{ id: evil, title: evil, url: evil }, { id: evil, title: evil, url: null }] },
    { type: "tool_call", id: evil, name: evil, title: evil, args: { [evil]: evil, nested: { [evil]: [evil] } } },
    { type: "tool_result", id: evil, name: evil, ok: true, duration_ms: 1, result: { [evil]: evil, sources: [{ title: evil, url: evil }] } },
    { type: "tool_result", id: "other", name: evil, ok: false, duration_ms: 1, result: { error: { message: evil } } },
    { type: "flyout", flyout_type: "code", content: evil, title: evil, language: evil },
    { type: "flyout", flyout_type: "terminal", content: evil, title: evil },
    { type: "flyout", flyout_type: "browser", content: evil, title: evil },
    { type: "image", url: evil, caption: evil },
    { type: "notice", kind: evil, text: evil, code: evil },
    { type: "error", message: evil, code: evil },
    { type: "reminder", id: evil, message: evil, due: 1, kind: evil, missed: true },
    { type: "confirmation_request", confirmation_token: evil, tool: evil, args: { [evil]: evil }, preview: evil, expires_at: 9e15 },
    { type: "energy", mode: "voice", level: 1, max: 3, reason: evil, model: evil },
    { type: "go_away", time_left_ms: 1000, reason: evil, resume: null },
    { type: "end_voice_session", reason: evil, final_message: evil },
    { type: "timeout", until: 9e15, duration_seconds: 1, message: evil },
  ];
}

/** Elements and attributes that the page itself never uses. */
function findMarkup(root: Element): string[] {
  const wrong: string[] = [];
  for (const element of root.querySelectorAll("*")) {
    if (["SCRIPT", "STYLE", "OBJECT", "EMBED", "B"].includes(element.tagName.toUpperCase())) wrong.push(element.outerHTML);
    for (const { name, value } of element.attributes) {
      if (name.startsWith("on") || name === "srcdoc") wrong.push(`${element.tagName} ${name}`);
      // The page itself only sets numbers in custom properties.
      if (name === "style" && !/^--[a-z-]+: [\d.]+(vw)?;$/.test(value)) wrong.push(`style=${value}`);
      if (["href", "src", "action", "formaction"].includes(name) && !/^(https?:|mailto:)/.test(value)) wrong.push(`${name}=${value}`);
    }
  }
  return wrong;
}

let app: RenderedApp;
beforeEach(async () => {
  app = await renderApp();
});
afterEach(() => app.end());

describe.each(PAYLOADS)("%s", (evil) => {
  test("is shown as text in every server message", async () => {
    await app.receive(...everywhere(evil));
    expect(findMarkup(app.root)).toEqual([]);
    expect(app.text()).toContain(evil.slice(0, 8).trim());
  });

  test("is shown as text in the history and in the panels", async () => {
    await app.receive({ type: "history", conversation_id: evil, turns: [{ role: "assistant", content: evil, spoken: false, at: 1 }] });
    await app.click('[aria-label="Models, latency and notices"]');
    expect(findMarkup(app.root)).toEqual([]);
  });
});

test("titles of conversations are shown as text", async () => {
  await app.click('[aria-label="Conversations and calls"]');
  await act(() => new Promise<void>((resolve) => setTimeout(resolve, 10)));
  expect(app.text(".list-title")).toBe("Earlier <b>talk</b>");
});

test("a framed page may run its own scripts and has no access to ours", async () => {
  await app.receive({ type: "flyout", flyout_type: "browser", content: "https://example.org/", title: "E" });
  const frame = app.root.querySelector("iframe")!;
  expect(frame.getAttribute("sandbox")).toBe("allow-scripts allow-forms");
  expect(app.root.querySelector(".flyout-note a")?.getAttribute("href")).toBe("https://example.org/");
});

test("links open in a tab that has no access to this one", async () => {
  await app.receive({ type: "response", text: "[a](https://example.org/)" });
  const link = app.root.querySelector(".answer a")!;
  expect([link.getAttribute("rel"), link.getAttribute("target")]).toEqual(["noopener noreferrer", "_blank"]);
});
