import { describe, expect, test } from "vitest";
import { type Block, type Inline, parseInline, parseMarkdown } from "../../src/view/markdown";

/** The tree in short, as in "p[a strong[b]]". */
function outline(blocks: readonly (Block | Inline)[]): string {
  return blocks.map(describeNode).join(" ");
}

function describeNode(node: Block | Inline): string {
  switch (node.type) {
    case "text":
      return node.text;
    case "break":
    case "rule":
      return node.type;
    case "code":
      return `${"language" in node ? `code:${node.language}` : "code"}[${node.text}]`;
    case "list":
      return `${node.start === null ? "ul" : `ol:${node.start}`}[${node.items.map((item) => `li[${outline(item)}]`).join(" ")}]`;
    case "table":
      return `table[${[node.head, ...node.rows].map((row) => row.map(outline).join("|")).join(" / ")}]`;
    case "link":
      return `link:${node.url}[${outline(node.children)}]`;
    case "heading":
      return `h${node.level}[${outline(node.children)}]`;
    default:
      return `${node.type}[${outline(node.children)}]`;
  }
}

describe("blocks", () => {
  test.each([
    ["one\ntwo\n\nthree", "paragraph[one\ntwo] paragraph[three]"],
    ["## Title ##", "h2[Title]"],
    ["```py\nx = 1\n```\nafter", "code:py[x = 1] paragraph[after]"],
    ["```\nstill open", "code:[still open]"],
    ["~~~js\n```\n~~~", "code:js[```]"],
    ["- a\n- b\n  - c", "ul[li[paragraph[a]] li[paragraph[b] ul[li[paragraph[c]]]]]"],
    ["3. a\n4. b", "ol:3[li[paragraph[a]] li[paragraph[b]]]"],
    ["- a\n\n- b\n\nafter", "ul[li[paragraph[a]] li[paragraph[b]]] paragraph[after]"],
    ["text\n- a", "paragraph[text] ul[li[paragraph[a]]]"],
    ["> a\n> > b", "quote[paragraph[a] quote[paragraph[b]]]"],
    ["| a | b |\n|---|:-:|\n| 1 | 2\\|3 |", "table[a|b / 1|2|3]"],
    ["---", "rule"],
    ["a | b, and no table", "paragraph[a | b, and no table]"],
    ["", ""],
  ])("%j", (text, expected) => {
    expect(outline(parseMarkdown(text))).toBe(expected);
  });
});

describe("words", () => {
  test.each([
    ["**a** and *b*", "strong[a]  and  em[b]"],
    ["_a_ but snake_case_name", "em[a]  but snake_case_name"],
    ["`a*b*`", "code[a*b*]"],
    ["~~a~~", "del[a]"],
    ["2 * 3 * 4", "2 * 3 * 4"],
    ["\\*a\\*", "* a *"],
    ["**open", "**open"],
    ["[a](https://e.org/x_(y))", "link:https://e.org/x_(y)[a]"],
    ["see https://e.org/a.", "see  link:https://e.org/a[https://e.org/a] ."],
    ["![a](https://e.org/p.png)", "link:https://e.org/p.png[a]"],
    ["a  \nb", "a break b"],
    ["[mail](mailto:a@e.org)", "link:mailto:a@e.org[mail]"],
  ])("%j", (text, expected) => {
    expect(outline(parseInline(text))).toBe(expected);
  });
});

describe("a hostile text", () => {
  test.each([
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:x)",
    "[x](\tjavascript:alert(1))",
    "[x](//evil.example)",
    "[x](/relative)",
    "<javascript:alert(1)>",
  ])("has no link: %s", (text) => {
    expect(JSON.stringify(parseMarkdown(text))).not.toContain('"link"');
  });

  test("is text where it looks like markup", () => {
    expect(parseMarkdown("<img src=x onerror=alert(1)>")).toEqual([
      { type: "paragraph", children: [{ type: "text", text: "<img src=x onerror=alert(1)>" }] },
    ]);
  });

  test.each([
    ["stars", "*".repeat(8000)],
    ["open strong", "**a ".repeat(2000)],
    ["brackets", "[".repeat(8000)],
    ["open links", "[a](".repeat(2000)],
    ["backticks", "`a ``".repeat(1600)],
    ["quotes", `${">".repeat(4000)} a`],
    ["lists", Array.from({ length: 400 }, (_, depth) => `${"  ".repeat(depth)}- a`).join("\n")],
    ["pipes", `${"|a".repeat(2000)}\n${"|-".repeat(2000)}|`],
    ["underscores", "_a".repeat(4000)],
    ["tildes", "~~a".repeat(2600)],
    ["addresses", "https://".repeat(1000)],
    ["fences", "```\n".repeat(2000)],
    ["spaces", `a${" ".repeat(8000)}b`],
  ])("of %s takes no long time", (_, text) => {
    // By the time of the processor: other tests run beside these.
    const before = process.cpuUsage().user;
    parseMarkdown(text);
    expect((process.cpuUsage().user - before) / 1000).toBeLessThan(400);
  });
});
