import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf-8");

test("the example in the documentation is web/example.html", () => {
  expect(read("../../../docs/embedding.md")).toContain("```html\n" + read("../../example.html") + "```");
});
