// @vitest-environment happy-dom
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { MicrophoneError } from "../../src/client/events";
import { serverState, chunk, transcript, interim, response } from "../view/messages";
import { renderApp, type RenderedApp } from "./render";

let drawn: RenderedApp;
let now = 1000;
beforeEach(async () => {
  now = 1000;
  drawn = await renderApp({ now: () => now });
});
afterEach(() => {
  drawn.end();
  vi.useRealTimers();
});

const key = (type: "keydown" | "keyup", init: KeyboardEventInit, target: Element = document.body) =>
  act(() => {
    target.dispatchEvent(new KeyboardEvent(type, { bubbles: true, cancelable: true, ...init }));
  });
const asked = () => drawn.client().calls;
const find = <T extends Element = HTMLElement>(selector: string) => drawn.root.querySelector<T>(selector);
const WAITING = { state: "waiting", retryInMs: 4200, attempt: 1, reason: "lost" } as const;
const OPEN = { state: "open", session: "first", reason: null } as const;

describe("the first screen", () => {
  test("is an invitation to talk, before there is a connection", () => {
    expect(find(".talk-large")).not.toBeNull();
    expect(find("textarea")?.hasAttribute("disabled")).toBe(false);
    expect(drawn.text("[role=status]")).toBe("Connection: Connecting…Microphone: Mic offAssistant: Idle");
  });

  test("gives way to the thread at the first word", async () => {
    await drawn.tell(interim("hel"));
    expect(find(".talk-large")).toBeNull();
    expect(find(".talk-small")).not.toBeNull();
  });
});

describe("the thread", () => {
  test("is a log in which streamed text grows", async () => {
    await drawn.tell(transcript("Hi"), chunk("Hel", true), chunk("lo"));
    expect(drawn.text("[role=log]")).toBe("You: HiAntiphon: Hello");
    expect(find(".answer")?.getAttribute("aria-busy")).toBe("true");
  });

  test("keeps the elements of what does not change", async () => {
    await drawn.tell(transcript("Hi"));
    const before = find(".bubble");
    await drawn.tell(chunk("Hel", true), response("Hello"));
    expect(find(".bubble")).toBe(before);
  });

  test("marks what was not heard", async () => {
    await drawn.tell(transcript("Hi"), response("One two"), serverState("speaking"), serverState("interrupted"));
    expect(drawn.text(".unheard")).toBe("One two");
    expect(drawn.text(".cut")).toContain("Interrupted");
  });

  test("shows what a tool does", async () => {
    await drawn.tell({ type: "tool_call", id: "a", name: "get_weather", args: { place: "Lisbon" } });
    expect(drawn.text(".tool summary")).toBe("Get weatherLisbonRunning");
    await drawn.tell({ type: "tool_result", id: "a", name: "get_weather", ok: true, duration_ms: 1234, result: { high: 21 } });
    expect(drawn.text(".tool-status")).toBe("Done · 1.2 s");
    expect(drawn.text(".tool pre")).toBe('{ "high": 21 }');
  });

  test("is emptied by clearing the conversation, after a second question", async () => {
    await drawn.tell(transcript("Hi"));
    await drawn.click('[aria-label="Conversations and calls"]');
    const clear = [...drawn.root.querySelectorAll("button")].find((button) => button.textContent === "Clear conversation")!;
    await act(() => clear.click());
    expect(asked()).not.toContain("clearConversation");
    await drawn.click('.danger');
    expect(asked()).toContain("clearConversation");
    expect(find(".bubble")).toBeNull();
  });
});

describe("a confirmation", () => {
  beforeEach(async () => {
    await drawn.tell({
      type: "confirmation_request", confirmation_token: "k", tool: "send_email", args: { to: "ana@example.org" }, preview: "Send it?", expires_at: 61_000,
    });
  });

  test("shows the preview, the exact arguments and the time that is left", () => {
    expect(drawn.text(".preview")).toBe("Send it?");
    expect(drawn.text(".arguments")).toBe("toana@example.org");
    expect(drawn.text(".countdown")).toBe("1:00");
  });

  test("has the focus on Cancel", () => {
    expect(document.activeElement?.textContent).toBe("Cancel");
  });

  test("is answered once", async () => {
    await drawn.click(".confirmation .primary");
    expect(asked().filter((each) => each.startsWith("confirm"))).toEqual(["confirm k true"]);
    expect(find(".confirmation")).toBeNull();
  });

  test("is denied by Escape", async () => {
    await act(() => {
      find("dialog")!.dispatchEvent(new Event("cancel", { cancelable: true }));
    });
    expect(asked().at(-1)).toBe("confirm k false");
  });
});

describe("the connection", () => {
  test("that is lost is tried again, or now", async () => {
    await act(() => drawn.client().emit("connection", WAITING));
    expect(drawn.text(".banner")).toContain("Trying again in 5 s.");
    await drawn.click(".banner button");
    expect(asked().at(-1)).toBe("connect");
  });

  test("that needs a token asks for one", async () => {
    await act(() => drawn.client().emit("connection", { state: "closed", code: 4401, reason: "" }));
    const input = find<HTMLInputElement>("#token")!;
    await act(() => {
      input.value = "secret";
      input.dispatchEvent(new Event("input", { bubbles: true }));
    });
    await act(() => {
      find("form.banner")!.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
    });
    expect(asked().at(-1)).toBe("connect secret");
  });

  test("that was refused says why, and can be tried again", async () => {
    await act(() => drawn.client().emit("connection", { state: "closed", code: 4409, reason: "" }));
    expect(drawn.text(".banner")).toContain("another window");
  });

  test("that is going to close is announced", async () => {
    await act(() => drawn.client().emit("connection", OPEN));
    await drawn.tell({ type: "go_away", time_left_ms: 9000, reason: "The server restarts.", resume: null });
    expect(drawn.text(".banner")).toContain("The server restarts. Reconnecting in 0:09");
  });
});

describe("a block", () => {
  test("says goodbye, counts down and takes no input", async () => {
    await drawn.tell({ type: "timeout", until: 61_000, duration_seconds: 60, message: "Goodbye." });
    expect(drawn.text(".banner")).toContain("Goodbye.");
    expect(drawn.text(".banner .countdown")).toBe("1:00");
    expect(find("textarea")?.hasAttribute("disabled")).toBe(true);
    expect(find(".talk")?.hasAttribute("disabled")).toBe(true);
  });

  test("is over when its time is", async () => {
    vi.useFakeTimers();
    await drawn.tell({ type: "timeout", until: 2000, duration_seconds: 1, message: "Goodbye." });
    now = 2000;
    await act(() => void vi.advanceTimersByTime(300));
    expect(find(".banner")).toBeNull();
    expect(asked().at(-1)).toBe("connect");
  });
});

describe("writing", () => {
  const write = async (text: string) => {
    const area = find<HTMLTextAreaElement>("textarea")!;
    await act(() => {
      area.value = text;
      area.dispatchEvent(new Event("input", { bubbles: true }));
    });
    return area;
  };

  test("is sent by Enter, and the field is empty again", async () => {
    const area = await write("hello");
    await key("keydown", { key: "Enter" }, area);
    expect(asked().at(-1)).toBe("say hello");
    expect(area.value).toBe("");
  });

  test("goes on in a new line with Shift", async () => {
    await key("keydown", { key: "Enter", shiftKey: true }, await write("hello"));
    expect(asked().filter((each) => each.startsWith("say"))).toEqual([]);
  });

  test("keeps the keys of the page to itself", async () => {
    await key("keydown", { key: " ", code: "Space" }, await write("a"));
    expect(asked()).not.toContain("startListening");
  });

  test("can stop an answer while there is nothing to send", async () => {
    await drawn.tell(serverState("processing"));
    await drawn.click('[aria-label="Stop the answer"]');
    expect(asked().at(-1)).toBe("interrupt");
  });
});

describe("keys", () => {
  test("Space talks as long as it is down", async () => {
    await key("keydown", { key: " ", code: "Space" });
    await key("keydown", { key: " ", code: "Space", repeat: true });
    await key("keyup", { key: " ", code: "Space" });
    expect(asked().slice(-2)).toEqual(["startListening", "stopListening"]);
  });

  test("talking ends when the window loses the focus", async () => {
    await key("keydown", { key: " ", code: "Space" });
    await act(() => void window.dispatchEvent(new Event("blur")));
    expect(asked().at(-1)).toBe("stopListening");
  });

  test("another key can be chosen for it", async () => {
    await act(() => drawn.page.change({ talkKey: "KeyT" }));
    await key("keydown", { key: " ", code: "Space" });
    expect(asked()).not.toContain("startListening");
    await key("keydown", { key: "t", code: "KeyT" });
    expect(asked().at(-1)).toBe("startListening");
  });

  test("Escape closes the panel first, and silences after that", async () => {
    await drawn.tell({ type: "flyout", flyout_type: "code", content: "a\nb", title: "x.py" });
    expect(drawn.text(".line-numbers")).toBe("1 2");
    await key("keydown", { key: "Escape" });
    expect(find(".flyout")).toBeNull();
    await key("keydown", { key: "Escape" });
    expect(asked().at(-1)).toBe("interrupt");
  });

  test("/ leads to the field, ? to the list of keys", async () => {
    await key("keydown", { key: "/" });
    expect(document.activeElement?.tagName).toBe("TEXTAREA");
    (document.activeElement as HTMLElement).blur();
    await key("keydown", { key: "?" });
    expect(drawn.text(".keys")).toContain("Hold Space");
  });

  test("M mutes and unmutes", async () => {
    await act(() => drawn.client().emit("microphone", { state: "on", muted: false, label: "Desk" }));
    await key("keydown", { key: "m" });
    expect(asked().at(-1)).toBe("mute true");
  });
});

describe("the talk button", () => {
  test("a click begins a call", async () => {
    await drawn.click(".talk");
    expect(asked().at(-1)).toBe("startVoice");
    expect(find(".talk")?.getAttribute("aria-pressed")).toBe("true");
  });

  test("held down it is push-to-talk, and the click that ends it begins no call", async () => {
    vi.useFakeTimers();
    const button = find(".talk")!;
    await act(() => void button.dispatchEvent(new PointerEvent("pointerdown", { button: 0, bubbles: true })));
    await act(() => void vi.advanceTimersByTime(400));
    await act(() => void button.dispatchEvent(new PointerEvent("pointerup", { button: 0, bubbles: true })));
    await act(() => button.click());
    expect(asked().slice(-2)).toEqual(["startListening", "stopListening"]);
  });
});

describe("without", () => {
  test("a microphone the page says why, and text goes on", async () => {
    const error = new MicrophoneError("insecure", "Not served over https. You can type instead.");
    await act(() => drawn.client().emit("microphone", { state: "failed", error }));
    expect(drawn.text(".banner")).toContain("Not served over https");
    expect(drawn.text("[role=status]")).toContain("No mic");
    expect(find("textarea")?.hasAttribute("disabled")).toBe(false);
  });

  test("sound the page says why while it would be heard", async () => {
    await act(() => drawn.client().emit("sound", { state: "failed", message: "No sound here." }));
    await drawn.tell(serverState("speaking"));
    expect(drawn.text(".banner")).toBe("No sound here.");
  });
});

describe("notices", () => {
  test("pass by and stay in the list", async () => {
    vi.useFakeTimers();
    await drawn.tell({ type: "notice", kind: "warning", text: "Slow today.", code: null, duration_ms: 2000 });
    expect(drawn.text(".toast")).toBe("Slow today.");
    await act(() => void vi.advanceTimersByTime(2100));
    expect(find(".toast")).toBeNull();
    await drawn.click('[aria-label="Energy, latency and notices"]');
    expect(drawn.text(".notice-row")).toContain("Slow today.");
  });

  test("a reminder stands until it is dismissed", async () => {
    await drawn.tell({ type: "reminder", id: "r", message: "Tea", due: 1000 });
    expect(drawn.text(".reminder")).toContain("Tea");
    await drawn.click(".reminder button");
    expect(find(".reminder")).toBeNull();
  });

  test("energy has a meter with its words", async () => {
    await drawn.tell({ type: "energy", mode: "voice", level: 1, max: 3, reason: "rate-limit-exceeded", model: "cascade" });
    await drawn.click('[aria-label="Energy, latency and notices"]');
    const meter = find("[role=meter]")!;
    expect(meter.getAttribute("aria-valuenow")).toBe("1");
    expect(meter.getAttribute("aria-valuetext")).toBe("1 of 3, cascade, lowered by a rate limit");
  });
});

describe("settings", () => {
  test("a theme is worn at once", async () => {
    await drawn.click('[aria-label="Settings"]');
    await drawn.click('[data-theme="rose"] input');
    expect(document.documentElement.dataset["theme"]).toBe("rose");
    expect(asked().at(-1)).toBe('settings {"theme":"rose"}');
  });

  test("every control has a name", async () => {
    await drawn.tell(transcript("Hi"), { type: "flyout", flyout_type: "terminal", content: "x" });
    await drawn.click('[aria-label="Settings"]');
    const nameless = [...drawn.root.querySelectorAll("button, input, select, textarea, summary, [role=separator]")].filter(
      (control) => !control.getAttribute("aria-label") && !control.closest("label")?.textContent && !control.textContent?.trim(),
    );
    expect(nameless.map((control) => control.outerHTML)).toEqual([]);
  });
});
