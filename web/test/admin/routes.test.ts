import { expect, test } from "vitest";
import { linkTo, readRoute } from "../../src/admin/routes";

test.each(["", "#", "#/", "#/nothing", "#/__proto__"])("%s opens the sessions", (hash) => {
  expect(readRoute(hash).view).toBe("sessions");
});

test("a link leads to what it names", () => {
  expect(readRoute(linkTo("conversations", "a/b c"))).toEqual({ view: "conversations", id: "a/b c", parameters: {} });
  expect(readRoute(linkTo("audit", null, { user: "a&b=c?", tool: "", since: undefined }))).toEqual({ view: "audit", id: null, parameters: { user: "a&b=c?" } });
});

test("an address that cannot be decoded is taken as it is", () => {
  expect(readRoute("#/conversations/%zz")).toEqual({ view: "conversations", id: "%zz", parameters: {} });
});
