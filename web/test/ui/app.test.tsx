// @vitest-environment happy-dom
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { MicrophoneError } from "../../src/client/events";
import { chunk, interim, inTurn, response, serverState, transcript } from "../view/messages";
import { renderApp, type RenderedApp } from "./render";

let app: RenderedApp;
let now = 1000;
beforeEach(async () => {
  now = 1000;
  app = await renderApp({ now: () => now });
});
afterEach(() => {
  app.end();
  vi.useRealTimers();
});

const key = (type: "keydown" | "keyup", init: KeyboardEventInit, target: Element = document.body) =>
  act(() => {
    target.dispatchEvent(new KeyboardEvent(type, { bubbles: true, cancelable: true, ...init }));
  });
const asked = () => app.client().calls;
const find = <T extends Element = HTMLElement>(selector: string) => app.root.querySelector<T>(selector);
const WAITING = { state: "waiting", retryInMs: 4200, attempt: 1, reason: "lost" } as const;
const OPEN = { state: "open", session: "first", reason: null } as const;

describe("the first screen", () => {
  test("invites to talk before there is a connection", () => {
    expect(find(".talk-large")).not.toBeNull();
    expect(find("textarea")?.hasAttribute("disabled")).toBe(false);
    expect(app.text("[role=status]")).toBe("Connection: Connecting…Microphone: Mic offAssistant: Idle");
  });

  test("is replaced by the thread at the first word", async () => {
    await app.receive(interim("hel"));
    expect(find(".talk-large")).toBeNull();
    expect(find(".talk-small")).not.toBeNull();
  });
});

describe("the thread", () => {
  test("is a log in which streamed text grows", async () => {
    await app.receive(transcript("Hi"), chunk("Hel", true), chunk("lo"));
    expect(app.text("[role=log]")).toBe("You: HiAntiphon: Hello");
    expect(find(".answer")?.getAttribute("aria-busy")).toBe("true");
  });

  test("keeps the elements of unchanged items", async () => {
    await app.receive(transcript("Hi"));
    const before = find(".bubble");
    await app.receive(chunk("Hel", true), response("Hello"));
    expect(find(".bubble")).toBe(before);
  });

  test("shows a late transcript above its answer, and keeps the answer's element", async () => {
    await app.receive(serverState("processing"), inTurn(1, response("It's six.")));
    const answer = find(".answer");
    await app.receive(inTurn(1, transcript("What time is it?")));
    expect(app.text("[role=log]")).toBe("You: What time is it?Antiphon: It's six.");
    expect(find(".answer")).toBe(answer);
  });

  test("marks what was not heard", async () => {
    await app.receive(transcript("Hi"), response("One two"), serverState("speaking"), serverState("interrupted"));
    expect(app.text(".unheard")).toBe("One two");
    expect(app.text(".cut")).toContain("Interrupted");
  });

  test("shows tool calls", async () => {
    await app.receive({ type: "tool_call", id: "a", name: "get_weather", args: { place: "Lisbon" } });
    expect(app.text(".tool summary")).toBe("Get weatherLisbonRunning");
    await app.receive({ type: "tool_result", id: "a", name: "get_weather", ok: true, duration_ms: 1234, result: { high: 21 } });
    expect(app.text(".tool-status")).toBe("Done · 1.2 s");
    expect(app.text(".tool pre")).toBe('{ "high": 21 }');
  });

  test("is emptied by clearing the conversation, after a confirmation", async () => {
    await app.receive(transcript("Hi"));
    await app.click('[aria-label="Conversations and calls"]');
    const clear = [...app.root.querySelectorAll("button")].find((button) => button.textContent === "Clear conversation")!;
    await act(() => clear.click());
    expect(asked()).not.toContain("clearConversation");
    await app.click('.danger');
    expect(asked()).toContain("clearConversation");
    expect(find(".bubble")).toBeNull();
  });
});

describe("a confirmation", () => {
  beforeEach(async () => {
    await app.receive({
      type: "confirmation_request", confirmation_token: "k", tool: "send_email", args: { to: "ana@example.org" }, preview: "Send it?", expires_at: 61_000,
    });
  });

  test("shows the preview, the exact arguments and the time left", () => {
    expect(app.text(".preview")).toBe("Send it?");
    expect(app.text(".arguments")).toBe("toana@example.org");
    expect(app.text(".countdown")).toBe("1:00");
  });

  test("focuses Cancel", () => {
    expect(document.activeElement?.textContent).toBe("Cancel");
  });

  test("is answered once", async () => {
    await app.click(".confirmation .primary");
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
  test("that is lost is retried, or at once on request", async () => {
    await act(() => app.client().emit("connection", WAITING));
    expect(app.text(".banner")).toContain("Next attempt in 5 s.");
    await app.click(".banner button");
    expect(asked().at(-1)).toBe("connect");
  });

  test("that requires a token asks for one", async () => {
    await act(() => app.client().emit("connection", { state: "closed", code: 4401, reason: "" }));
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

  test("that was refused says why, and can be retried", async () => {
    await act(() => app.client().emit("connection", { state: "closed", code: 4409, reason: "" }));
    expect(app.text(".banner")).toContain("another window");
  });

  test("that will close is announced", async () => {
    await act(() => app.client().emit("connection", OPEN));
    await app.receive({ type: "go_away", time_left_ms: 9000, reason: "The server restarts.", resume: null });
    expect(app.text(".banner")).toBe("The server restarts.");
  });
});

describe("a block", () => {
  test("says goodbye, counts down and accepts no input", async () => {
    await app.receive({ type: "timeout", until: 61_000, duration_seconds: 60, message: "Goodbye." });
    expect(app.text(".banner")).toContain("Goodbye.");
    expect(app.text(".banner .countdown")).toBe("1:00");
    expect(find("textarea")?.hasAttribute("disabled")).toBe(true);
    expect(find(".talk")?.hasAttribute("disabled")).toBe(true);
  });

  test("ends when its time is up", async () => {
    vi.useFakeTimers();
    await app.receive({ type: "timeout", until: 2000, duration_seconds: 1, message: "Goodbye." });
    now = 2000;
    await act(() => void vi.advanceTimersByTime(300));
    expect(find(".banner")).toBeNull();
    expect(asked().at(-1)).toBe("connect");
  });
});

describe("typing", () => {
  const write = async (text: string) => {
    const area = find<HTMLTextAreaElement>("textarea")!;
    await act(() => {
      area.value = text;
      area.dispatchEvent(new Event("input", { bubbles: true }));
    });
    return area;
  };

  test("is sent with Enter, which empties the message box", async () => {
    const area = await write("hello");
    await key("keydown", { key: "Enter" }, area);
    expect(asked().at(-1)).toBe("say hello");
    expect(area.value).toBe("");
  });

  test("starts a new line with Shift and Enter", async () => {
    await key("keydown", { key: "Enter", shiftKey: true }, await write("hello"));
    expect(asked().filter((each) => each.startsWith("say"))).toEqual([]);
  });

  test("does not trigger the page's shortcuts", async () => {
    await key("keydown", { key: " ", code: "Space" }, await write("a"));
    expect(asked()).not.toContain("startListening");
  });

  test("leaves a stop button while there is nothing to send", async () => {
    await app.receive(serverState("processing"));
    await app.click('[aria-label="Stop the answer"]');
    expect(asked().at(-1)).toBe("interrupt");
  });
});

describe("keyboard shortcuts", () => {
  test("Space talks while it is held", async () => {
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

  test("another key can be chosen for push-to-talk", async () => {
    await act(() => app.page.change({ talkKey: "KeyT" }));
    await key("keydown", { key: " ", code: "Space" });
    expect(asked()).not.toContain("startListening");
    await key("keydown", { key: "t", code: "KeyT" });
    expect(asked().at(-1)).toBe("startListening");
  });

  test("Escape closes the panel first, and then stops the assistant", async () => {
    await app.receive({ type: "flyout", flyout_type: "code", content: "a\nb", title: "x.py" });
    expect(app.text(".line-numbers")).toBe("1 2");
    await key("keydown", { key: "Escape" });
    expect(find(".flyout")).toBeNull();
    await key("keydown", { key: "Escape" });
    expect(asked().at(-1)).toBe("interrupt");
  });

  test("/ focuses the message box, and ? shows the list of shortcuts", async () => {
    await key("keydown", { key: "/" });
    expect(document.activeElement?.tagName).toBe("TEXTAREA");
    (document.activeElement as HTMLElement).blur();
    await key("keydown", { key: "?" });
    expect(app.text(".keys")).toContain("Hold Space");
  });

  test("M mutes and unmutes", async () => {
    await act(() => app.client().emit("microphone", { state: "on", muted: false, label: "Desk" }));
    await key("keydown", { key: "m" });
    expect(asked().at(-1)).toBe("mute true");
  });
});

describe("the talk button", () => {
  test("a click starts a call", async () => {
    await app.click(".talk");
    expect(asked().at(-1)).toBe("startVoice");
    expect(find(".talk")?.getAttribute("aria-pressed")).toBe("true");
  });

  test("holding it is push-to-talk, and releasing it does not start a call", async () => {
    vi.useFakeTimers();
    const button = find(".talk")!;
    await act(() => void button.dispatchEvent(new PointerEvent("pointerdown", { button: 0, bubbles: true })));
    await act(() => void vi.advanceTimersByTime(400));
    await act(() => void button.dispatchEvent(new PointerEvent("pointerup", { button: 0, bubbles: true })));
    await act(() => button.click());
    expect(asked().slice(-2)).toEqual(["startListening", "stopListening"]);
  });
});

describe("without a device", () => {
  test("the page says why there is no microphone, and text still works", async () => {
    const error = new MicrophoneError("insecure", "Not served over https. You can type instead.");
    await act(() => app.client().emit("microphone", { state: "failed", error }));
    expect(app.text(".banner")).toContain("Not served over https");
    expect(app.text("[role=status]")).toContain("No mic");
    expect(find("textarea")?.hasAttribute("disabled")).toBe(false);
  });

  test("the page says why there is no sound while the assistant speaks", async () => {
    await act(() => app.client().emit("sound", { state: "failed", message: "No sound here." }));
    await app.receive(serverState("speaking"));
    expect(app.text(".banner")).toBe("No sound here.");
  });
});

describe("notices", () => {
  test("disappear and stay in the list", async () => {
    vi.useFakeTimers();
    await app.receive({ type: "notice", kind: "warning", text: "Slow today.", code: null, duration_ms: 2000 });
    expect(app.text(".toast")).toBe("Slow today.");
    await act(() => void vi.advanceTimersByTime(2100));
    expect(find(".toast")).toBeNull();
    await app.click('[aria-label="Models, latency and notices"]');
    expect(app.text(".notice-row")).toContain("Slow today.");
  });

  test("a reminder stays until it is dismissed", async () => {
    await app.receive({ type: "reminder", id: "r", message: "Tea", due: 1000 });
    expect(app.text(".reminder")).toContain("Tea");
    await app.click(".reminder button");
    expect(find(".reminder")).toBeNull();
  });

  test("energy is shown as a meter with a description", async () => {
    await app.receive({ type: "energy", mode: "voice", level: 1, max: 3, reason: "rate-limit-exceeded", model: "cascade" });
    await app.click('[aria-label="Models, latency and notices"]');
    const meter = find("[role=meter]")!;
    expect(meter.getAttribute("aria-valuenow")).toBe("1");
    expect(meter.getAttribute("aria-valuetext")).toBe("1 of 3, rate-limited, cascade");
  });
});

describe("settings", () => {
  test("a theme takes effect at once", async () => {
    await app.click('[aria-label="Settings"]');
    await app.click('[data-theme="rose"] input');
    expect(document.documentElement.dataset["theme"]).toBe("rose");
    expect(asked().at(-1)).toBe('settings {"theme":"rose"}');
  });

  test("every control has a name", async () => {
    await app.receive(transcript("Hi"), { type: "flyout", flyout_type: "terminal", content: "x" });
    await app.click('[aria-label="Settings"]');
    const nameless = [...app.root.querySelectorAll("button, input, select, textarea, summary, [role=separator]")].filter(
      (control) => !control.getAttribute("aria-label") && !control.closest("label")?.textContent && !control.textContent?.trim(),
    );
    expect(nameless.map((control) => control.outerHTML)).toEqual([]);
  });
});
