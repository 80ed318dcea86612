import { describe, expect, test } from "vitest";
import { findCitations, frameUrl, imageUrl, linkUrl } from "../../src/view/urls";
import { formatCountdown, formatDuration, nameTool, toMarkdown } from "../../src/view/format";
import { chunk, transcript, interim, reduceAll, response } from "./messages";

describe("URLs", () => {
  test.each(["javascript:alert(1)", " javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "blob:https://e.org/x", "", "x", null, 7, {}])(
    "%j is none that can be followed",
    (text) => {
      expect([linkUrl(text), frameUrl(text)]).toEqual([null, null]);
    },
  );

  test("a mail address is a link but not a page", () => {
    expect([linkUrl("mailto:a@e.org"), frameUrl("mailto:a@e.org")]).toEqual(["mailto:a@e.org", null]);
  });

  test.each([
    ["/images/1.png", "https://page.example/images/1.png"],
    ["https://page.example/images/1.png", "https://page.example/images/1.png"],
    ["/api/conversations", null],
    ["/images/../api/conversations", null],
    ["http://e.org/a.png", null],
    ["//e.org/a.png", "https://e.org/a.png"],
    ["https://e.org/a.png", "https://e.org/a.png"],
    ["data:image/png;base64,AAAA", "data:image/png;base64,AAAA"],
    ["data:image/svg+xml;base64,AAAA", null],
    ["data:text/html;base64,AAAA", null],
    ["javascript:alert(1)", null],
  ])("the picture %s is %s", (text, expected) => {
    expect(imageUrl(text, "https://page.example/")).toBe(expected);
  });

  test.each([
    ["/images/1.png", "https://page.example/voice/images/1.png"],
    ["https://page.example/voice/images/1.png", "https://page.example/voice/images/1.png"],
    ["https://page.example/images/1.png", null],
    ["/images/../api/conversations", null],
    ["/voice/api/conversations", null],
  ])("on a page that is mounted below a prefix, the picture %s is %s", (text, expected) => {
    expect(imageUrl(text, "https://page.example/voice/?q#a")).toBe(expected);
  });
});

describe("citations", () => {
  test("are found in a result, each once", () => {
    const source = { title: "A", url: "https://a.example/" };
    expect(findCitations({ sources: [source, source], results: [{ url: "https://b.example/x" }] })).toEqual([
      source,
      { title: "b.example", url: "https://b.example/x" },
    ]);
  });

  test.each([null, "x", 3, {}, { sources: "x" }, { sources: [null, 1, { url: "javascript:alert(1)", title: "x" }] }])(
    "are none in %j",
    (result) => {
      expect(findCitations(result)).toEqual([]);
    },
  );
});

describe("the thread as Markdown", () => {
  test("contains what was said, and by whom", () => {
    const state = reduceAll([transcript("Hi"), chunk("Hel", true), response("Hello."), interim("and")]);
    expect(toMarkdown(state.items)).toBe("**You:** Hi\n\n**Antiphon:** Hello.\n");
  });

  test("contains results that cannot end their own fence", () => {
    const state = reduceAll([{ type: "tool_result", name: "t", id: "a", ok: true, result: "```\n# x", duration_ms: 1 }]);
    expect(toMarkdown(state.items)).toMatch(/^````\n/);
  });
});

describe("formatting", () => {
  test.each([[0, "0 ms"], [999, "999 ms"], [1500, "1.5 s"], [42_000, "42 s"], [65_000, "1:05"]])("%d ms is %s", (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  test.each([[-5, "0:00"], [59_001, "1:00"], [3_723_000, "1:02:03"]])("a countdown of %d ms is %s", (ms, text) => {
    expect(formatCountdown(ms)).toBe(text);
  });

  test.each([["get_weather", "Get weather"], ["", "Tool"], ["__", "Tool"]])("%j is called %s", (name, expected) => {
    expect(nameTool(name)).toBe(expected);
  });
});
