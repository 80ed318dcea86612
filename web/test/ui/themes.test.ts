import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { THEMES } from "../../src/view/settings";

const GROUNDS = ["bg", "surface", "raised", "bubble", "code"];
const INKS = ["text", "muted", "link", "good", "busy", "bad"];
const READ: [string, string][] = [
  ...GROUNDS.flatMap((ground) => INKS.map((ink): [string, string] => [ink, ground])),
  ["on-accent", "accent"],
  ["on-bad", "bad"],
];
const SEEN: [string, string][] = ["bg", "surface", "raised"].map((ground) => ["edge", ground]);

const css = readFileSync(new URL("../../src/ui/themes.css", import.meta.url), "utf8");
const themes = new Map(
  [...css.matchAll(/\[data-theme="(\w+)"\] \{([^}]+)\}/g)].map(([, name, body]) => [
    name!,
    new Map([...body!.matchAll(/(?:--)?([\w-]+): ([^;]+);/g)].map(([, key, value]) => [key!, value!])),
  ]),
);

function luminance(hex: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const share = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

test("every theme that can be chosen exists", () => {
  expect([...themes.keys()].sort()).toEqual([...THEMES].sort());
});

describe.each([...themes])("%s", (_, colours) => {
  test.each(READ)("%s text is readable on %s", (ink, ground) => {
    expect(contrast(colours.get(ink)!, colours.get(ground)!)).toBeGreaterThanOrEqual(4.5);
  });

  test.each(SEEN)("%s is visible on %s", (edge, ground) => {
    expect(contrast(colours.get(edge)!, colours.get(ground)!)).toBeGreaterThanOrEqual(3);
  });

  test("tells the browser whether it is light or dark", () => {
    const isLight = luminance(colours.get("bg")!) > 0.5;
    expect(colours.get("color-scheme")).toBe(isLight ? "light" : "dark");
  });
});
