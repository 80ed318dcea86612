// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { allowNotifications, createNotifier } from "../../src/ui/notifier";
import type { Reminder } from "../../src/view/state";

let shown: FakeNotification[] = [];

class FakeNotification {
  static permission: NotificationPermission = "granted";
  static requestPermission = async () => FakeNotification.permission;
  onclick: (() => void) | null = null;
  isOpen = true;
  constructor(readonly title: string, readonly options: NotificationOptions) {
    shown.push(this);
  }
  close(): void {
    this.isOpen = false;
  }
}

const TIMER: Reminder = { key: "r@1", message: "Tea", due: 1, kind: "timer", missed: false };

beforeEach(() => {
  shown = [];
  FakeNotification.permission = "granted";
  vi.stubGlobal("Notification", FakeNotification);
  vi.stubGlobal("isSecureContext", true);
  vi.spyOn(document, "hasFocus").mockReturnValue(false);
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

test("the system shows a reminder once, until it is dismissed", () => {
  const notifier = createNotifier(() => true);
  notifier.follow([TIMER]);
  notifier.follow([TIMER]);
  expect(shown.map(({ title, options }) => [title, options.body, options.requireInteraction])).toEqual([["Timer", "Tea", true]]);
  notifier.follow([]);
  expect(shown[0]?.isOpen).toBe(false);
});

test.each([
  ["the user does not want it", false, "granted", false],
  ["the browser does not allow it", true, "denied", false],
  ["the user looks at the page", true, "granted", true],
] as const)("nothing is shown if %s", (_, isWanted, permission, hasFocus) => {
  FakeNotification.permission = permission;
  vi.spyOn(document, "hasFocus").mockReturnValue(hasFocus);
  createNotifier(() => isWanted).follow([TIMER]);
  expect(shown).toEqual([]);
});

test("a browser that refuses to make one is no error", () => {
  vi.stubGlobal("Notification", Object.assign(function refuse() { throw new TypeError("Illegal constructor"); }, { permission: "granted" }));
  expect(() => createNotifier(() => true).follow([TIMER])).not.toThrow();
});

test("a page without HTTPS cannot ask", async () => {
  vi.stubGlobal("isSecureContext", false);
  expect(await allowNotifications()).toBe(false);
});
