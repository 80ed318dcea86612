import { describe, expect, test } from "vitest";
import { createKnowledge, describeRecord, EMPTY_DRAFT, markHits, splitTags, toRecord } from "../../src/view/knowledge";

const marked = (text: string, query: string) => markHits(text, query).map(({ text: piece, isHit }) => (isHit ? `[${piece}]` : piece)).join("");

describe("hits", () => {
  test.each([
    ["The guest wifi password", "wifi", "The guest [wifi] password"],
    ["Passwords change in May", "password", "[Passwords] change in May"],
    ["A train leaves", "trains", "A [train] leaves"],
    ["Straße in Köln", "köln", "Straße in [Köln]"],
    ["What the house is", "what is the house", "What the [house] [is]"],
    ["nothing", "", "nothing"],
    ["a+b (c)", "a+b (c", "a+b (c)"],
    ["unwifi", "wifi", "unwifi"],
    ["<b>wifi</b>", "wifi", "<b>[wifi]</b>"],
  ])("in %s of %s", (text, query, expected) => {
    expect(marked(text, query)).toBe(expected);
  });
});

describe("a record", () => {
  test("is described by what is known, in words for people", () => {
    expect(describeRecord({ type: "doc", namespace: "personal", last_updated: "2026-05-04T12:00:00Z" })).toMatch(/^Document · Only me · .*2026/);
    expect(describeRecord({ type: "recipe", namespace: "", last_updated: "soon" })).toBe("recipe");
  });

  test("is sent without the fields that were left empty", () => {
    const sent = { title: "Wifi", body: "x", type: "doc", namespace: "personal", tags: ["a", "b"] };
    expect(toRecord({ ...EMPTY_DRAFT, title: " Wifi ", body: "x", tags: " a, b ,a,, " })).toEqual(sent);
    expect(splitTags(" , ")).toEqual([]);
  });
});

describe("the API", () => {
  function recorded(answer: unknown) {
    const asked: unknown[][] = [];
    return { asked, knowledge: createKnowledge(async (...request) => (asked.push(request), answer)) };
  }

  test("is asked for the newest records without a query", async () => {
    const { asked, knowledge } = recorded({ results: [], total: 0 });
    await knowledge.search({ query: "  ", tag: null, limit: 20 });
    expect(asked).toEqual([["GET", "api/kb?limit=20"]]);
  });

  test("gets queries, tags and ids encoded", async () => {
    const { asked, knowledge } = recorded({});
    expect(await knowledge.search({ query: "a&b=c", tag: "d e", limit: 5 })).toEqual({ results: [], total: 0 });
    await knowledge.remove("a/b?c");
    expect(asked.map(([, path]) => path)).toEqual(["api/kb?limit=5&query=a%26b%3Dc&tag=d+e", "api/kb/a%2Fb%3Fc"]);
  });
});
