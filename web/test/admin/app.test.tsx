// @vitest-environment happy-dom
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, type MockInstance, test, vi } from "vitest";
import { type Api, createApi, RequestError, type TimelineEntry } from "../../src/admin/api";
import { App } from "../../src/admin/App";
import { REFRESH_MS } from "../../src/admin/context";

const SESSION = {
  id: "c04f7be2d1904a66", user: "ana", conversation_id: "k1", mode: "voice", node: "one:1", held: true, connected: true, stored: true,
  updated_ms: 0, resumable_until_ms: null, model: "cascade",
};
const STATUS = { user: "sofia", node: "one:1", version: "0.1.0", tools_version: "1", sessions: 1, connected: 1 };

/** An API of which a test gives only what it needs. */
function fakeApi(given: Partial<Api>): Api {
  const none = { rows: [], next: null };
  return { status: async () => STATUS, sessions: async () => none, audit: async () => none, conversations: async () => none, ...given } as Api;
}

let root: HTMLElement;
let tokens: string[];
beforeEach(() => {
  vi.useFakeTimers();
  location.hash = "";
  sessionStorage.clear();
  tokens = [];
  root = document.createElement("div");
  document.body.append(root);
});
afterEach(() => {
  render(null, root);
  root.remove();
  vi.useRealTimers();
});

async function open(api: Partial<Api>, token: string | null = "apn_x"): Promise<void> {
  if (token !== null) sessionStorage.setItem("antiphon.admin", token);
  await act(() => {
    render(<App makeApi={(given) => (tokens.push(given), fakeApi(api))} local={null} tab={sessionStorage} />, root);
  });
  await settle();
}
const settle = (ms = 0) =>
  act(async () => {
    await vi.advanceTimersByTimeAsync(ms);
  });
const dispatch = (element: HTMLElement, event: Event) =>
  act(() => {
    element.dispatchEvent(event);
  });
const text = () => root.textContent!.replaceAll(/\s+/g, " ").trim();
const find = <T extends HTMLElement>(selector: string) => root.querySelector<T>(selector)!;
const button = (name: string) => [...root.querySelectorAll("button")].find((each) => each.textContent!.replaceAll(/\s+/g, " ").trim().startsWith(name))!;
const click = async (element: HTMLElement) => {
  await act(() => element.click());
  await settle();
};
async function go(hash: string): Promise<void> {
  await act(() => {
    location.hash = hash;
    dispatchEvent(new Event("hashchange"));
  });
  await settle();
}

describe("signing in", () => {
  test("is asked for without a token, and the token is kept in the tab", async () => {
    await open({}, null);
    expect(text()).toContain("antiphon token new --admin");
    expect(tokens).toEqual([]);
    await act(() => {
      find<HTMLInputElement>("#token").value = " apn_y ";
      find("#token").dispatchEvent(new Event("input", { bubbles: true }));
    });
    await dispatch(find("form"), new Event("submit", { bubbles: true, cancelable: true }));
    await settle();
    expect(tokens).toEqual(["apn_y"]);
    expect(sessionStorage.getItem("antiphon.admin")).toBe("apn_y");
    expect(find("h1").textContent).toBe("Sessions");
  });

  test("is asked for again if the token is refused, with the server's sentence", async () => {
    await open({ sessions: () => Promise.reject(new RequestError(403, "This is not an admin token.")) });
    expect(find("[role=alert]").textContent).toBe("This is not an admin token.");
    expect(sessionStorage.getItem("antiphon.admin")).toBeNull();
  });

  test("ends when the operator signs out", async () => {
    await open({});
    await click(button("Sign out"));
    expect(find("h1").textContent).toBe("Antiphon admin");
    expect(sessionStorage.getItem("antiphon.admin")).toBeNull();
  });
});

describe("a list", () => {
  test("is a table with a caption, and says so if it is empty", async () => {
    await open({});
    expect(text()).toContain("There are no sessions.");
    expect(root.querySelector("table")).toBeNull();
  });

  test("is refreshed by itself until that is paused", async () => {
    const sessions = vi.fn(async () => ({ rows: [SESSION], next: null }));
    await open({ sessions });
    expect(find("table caption").textContent).toContain("Sessions of all nodes");
    expect(find("tbody th[scope=row]").textContent).toContain("c04f7be2");
    await settle(REFRESH_MS);
    expect(sessions).toHaveBeenCalledTimes(2);
    await click(button("Pause updates"));
    const before = sessions.mock.calls.length;
    await settle(REFRESH_MS * 3);
    expect(sessions).toHaveBeenCalledTimes(before);
    await click(button("Resume updates"));
    await settle(REFRESH_MS);
    expect(sessions.mock.calls.length).toBeGreaterThan(before);
  });

  test("keeps what it shows while the server is gone, and says so", async () => {
    let isGone = false;
    const sessions = async () => {
      if (isGone) throw new RequestError(0, "The server cannot be reached.");
      return { rows: [SESSION], next: null };
    };
    await open({ sessions });
    isGone = true;
    await settle(REFRESH_MS);
    expect(text()).toContain("The server cannot be reached.");
    expect(find("tbody th").textContent).toContain("c04f7be2");
    isGone = false;
    await settle(REFRESH_MS * 2);
    expect(text()).not.toContain("The server cannot be reached.");
  });

  test("is filtered, and what is left is told", async () => {
    await open({ sessions: async () => ({ rows: [SESSION, { ...SESSION, id: "d", user: "tomas" }], next: null }) });
    await act(() => {
      find<HTMLInputElement>("input[type=search]").value = "tom";
      find("input[type=search]").dispatchEvent(new Event("input", { bubbles: true }));
    });
    expect(root.querySelectorAll("tbody tr")).toHaveLength(1);
    expect(find(".filter [role=status]").textContent).toBe("1 session");
  });

  test("is continued where the page before it ended", async () => {
    const sessions = vi.fn(async (_: string, before: string | null) =>
      before === null ? { rows: [SESSION], next: "cursor" } : { rows: [{ ...SESSION, id: "second" }], next: null },
    );
    await open({ sessions });
    await click(button("Show more"));
    expect(sessions).toHaveBeenLastCalledWith("", "cursor");
    expect(root.querySelectorAll("tbody tr")).toHaveLength(2);
    expect(button("Show more")).toBeUndefined();
  });
});

describe("what cannot be undone", () => {
  const TOKEN = { id: "t1", user: "ana", name: "phone", is_admin: false, created_ms: 0, expires_ms: null, is_expired: false, is_current: false };

  test("is asked about first, and the outcome is announced", async () => {
    const revoke = vi.fn(async () => undefined);
    await open({ tokens: async () => [TOKEN], revoke });
    await go("#/tokens");
    await click(button("Revoke the token t1"));
    expect(revoke).not.toHaveBeenCalled();
    await click(button("Really revoke?"));
    expect(revoke).toHaveBeenCalledWith("t1");
    expect(find(".told").textContent).toContain("The token t1 of ana is revoked.");
  });

  test("is not done if the question is left with Escape", async () => {
    const revoke = vi.fn(async () => undefined);
    await open({ tokens: async () => [TOKEN], revoke });
    await go("#/tokens");
    await click(button("Revoke"));
    await dispatch(button("Really revoke?"), new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
    expect(button("Really revoke?")).toBeUndefined();
  });

  test("that fails says why", async () => {
    await open({ tokens: async () => [TOKEN], revoke: () => Promise.reject(new RequestError(404, "There is no such token.")) });
    await go("#/tokens");
    await click(button("Revoke"));
    await click(button("Really revoke?"));
    expect(text()).toContain("There is no such token.");
  });
});

describe("a timeline", () => {
  const conversation = { id: "k1", user: "ana", title: "Trains", created_ms: 0, updated_ms: 0 };

  test("shows words as text, never as markup", async () => {
    const words = "<img src=x onerror=alert(1)>";
    const entry = { kind: "said", at_ms: 1, seq: 1, role: "user", text: words, spoken: true } as const;
    await open({ timeline: async () => ({ conversation, entries: [entry], earlier: null }) });
    await go("#/conversations/k1");
    expect(find(".words").textContent).toBe(words);
    expect(root.querySelector("img")).toBeNull();
  });

  test("is not refreshed by itself, since each look is audited", async () => {
    const timeline = vi.fn(async () => ({ conversation, entries: [], earlier: null }));
    await open({ timeline });
    await go("#/conversations/k1");
    await settle(REFRESH_MS * 3);
    expect(timeline).toHaveBeenCalledTimes(1);
    await click(button("Refresh"));
    expect(timeline).toHaveBeenCalledTimes(2);
  });

  test("puts earlier entries before the others", async () => {
    const said = (seq: number) => ({ kind: "said", at_ms: seq, seq, role: "user", text: `word ${seq}`, spoken: false }) as const;
    await open({
      timeline: async (_, before) =>
        before === null ? { conversation, entries: [said(2)], earlier: "cursor" } : { conversation, entries: [said(1)], earlier: null },
    });
    await go("#/conversations/k1");
    await click(button("Show earlier entries"));
    expect([...root.querySelectorAll(".words")].map((each) => each.textContent)).toEqual(["word 1", "word 2"]);
  });
});

describe("a recording", () => {
  const recordings = [{ id: "r1", started_ms: 0, duration_ms: 9_000 }, { id: "r2", started_ms: 9_000, duration_ms: null }];
  const entries: TimelineEntry[] = [
    { kind: "call", at_ms: 0, id: "v1", duration_ms: 9_000, models: [], energy_path: [], summary: "", recordings },
    { kind: "said", at_ms: 1, seq: 1, role: "user", text: "Hello", spoken: true, place: { recording: "r1", at_ms: 61_500 } },
    { kind: "said", at_ms: 2, seq: 2, role: "user", text: "typed", spoken: false, place: null },
  ];
  const conversation = { id: "k1", user: "ana", title: "Trains", created_ms: 0, updated_ms: 0 };
  const timeline = async () => ({ conversation, entries, earlier: null });
  let revoked: MockInstance<typeof URL.revokeObjectURL>;
  beforeEach(() => {
    vi.spyOn(URL, "createObjectURL").mockReturnValue("blob:sound");
    revoked = vi.spyOn(URL, "revokeObjectURL").mockReturnValue();
  });
  afterEach(() => vi.restoreAllMocks());

  test("is fetched once, when it is first wanted, and let go with the view", async () => {
    const recording = vi.fn(async () => new Blob(["sound"]));
    await open({ timeline, recording });
    await go("#/conversations/k1");
    expect(text()).toContain("A recording of this call is not complete yet.");
    expect(root.querySelectorAll(".play-from")).toHaveLength(1);
    expect(recording).not.toHaveBeenCalled();
    await click(button("Play from 1:01"));
    await click(button("Play the recording"));
    expect(recording.mock.calls).toEqual([["k1", "r1"]]);
    expect(find<HTMLAudioElement>("audio").getAttribute("src")).toBe("blob:sound");
    expect(revoked).not.toHaveBeenCalled();
    await go("#/conversations");
    expect(revoked.mock.calls).toEqual([["blob:sound"]]);
  });

  test("that comes after the view was left is let go at once", async () => {
    let deliver = (_: Blob): void => undefined;
    await open({ timeline, recording: () => new Promise((resolve) => (deliver = resolve)) });
    await go("#/conversations/k1");
    await click(button("Play from 1:01"));
    expect(text()).toContain("Loading the recording…");
    await go("#/conversations");
    deliver(new Blob());
    await settle();
    expect(revoked.mock.calls).toEqual([["blob:sound"]]);
  });

  test("that cannot be fetched says why, and is tried again", async () => {
    const recording = vi.fn(() => Promise.reject<Blob>(new RequestError(404, "The file of this recording is gone.")));
    await open({ timeline, recording });
    await go("#/conversations/k1");
    await click(button("Play from 1:01"));
    expect(find(".sound [role=alert]").textContent).toBe("The file of this recording is gone.");
    await click(button("Play from 1:01"));
    expect(recording).toHaveBeenCalledTimes(2);
  });
});

test("a search of the audit is in the address", async () => {
  const audit = vi.fn(async () => ({ rows: [], next: null }));
  await open({ audit });
  await go("#/audit?tool=look");
  expect(audit).toHaveBeenLastCalledWith({ tool: "look" }, null);
  const [user] = root.querySelectorAll<HTMLInputElement>("form input");
  await act(() => {
    user!.value = "ana";
    user!.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await dispatch(find("form"), new Event("submit", { bubbles: true, cancelable: true }));
  expect(location.hash).toBe("#/audit?user=ana&tool=look");
});

describe("requests", () => {
  afterEach(() => vi.unstubAllGlobals());

  test("show the token, and leave empty parameters out", async () => {
    const asked = vi.fn(async (_: URL, __: RequestInit) => new Response(JSON.stringify({ sessions: [], next: null })));
    vi.stubGlobal("fetch", asked);
    await createApi("http://here/admin", "apn_x").sessions("a&b", null);
    const [url, init] = asked.mock.calls[0]!;
    expect(String(url)).toBe("http://here/api/admin/sessions?user=a%26b&limit=100");
    expect(init.headers).toEqual({ authorization: "Bearer apn_x" });
  });

  test("fail with the server's sentence, or with one about the connection", async () => {
    const api = createApi("http://here/admin", "apn_x");
    vi.stubGlobal("fetch", async () => new Response(JSON.stringify({ error: { message: "Not here." } }), { status: 404 }));
    await expect(api.revoke("t")).rejects.toMatchObject({ status: 404, message: "Not here.", isRefused: false });
    vi.stubGlobal("fetch", async () => new Response("<html>", { status: 502 }));
    await expect(api.status()).rejects.toThrow("The request failed (status 502).");
    vi.stubGlobal("fetch", () => Promise.reject(new TypeError("failed")));
    await expect(api.status()).rejects.toMatchObject({ status: 0, message: "The server cannot be reached." });
  });
});

describe("the sessions of the energy view", () => {
  const session = (id: string, node: string) => ({
    session_id: id, user: "ana", conversation_id: "k1", mode: "text", connected: true, text: 2, voice: null, model: "builtin", node,
  });
  const heads = () => [...root.querySelectorAll("thead th")].map(({ textContent }) => textContent);

  test("have no node if there is only one", async () => {
    await open({ energy: async () => ({ ladders: [], sessions: [session("s1", "one:1"), session("s2", "one:1")], unreached: [] }) });
    await go("#/energy");
    expect(root.querySelectorAll("tbody tr")).toHaveLength(2);
    expect(heads()).not.toContain("Node");
  });

  test("have their node if there are several, and a node that does not answer is named", async () => {
    await open({ energy: async () => ({ ladders: [], sessions: [session("s1", "one:1"), session("s2", "two:2")], unreached: ["three:3"] }) });
    await go("#/energy");
    expect(heads()).toContain("Node");
    expect(find("table").textContent).toContain("two:2");
    expect(find(".trouble").textContent).toBe("The node three:3 does not answer, so its sessions are not shown.");
  });
});
