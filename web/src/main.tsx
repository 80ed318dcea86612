import { render } from "preact";
import { Antiphon } from "./client/antiphon";
import { App } from "./ui/App";
import { PageContext } from "./ui/hooks";
import "./ui/themes.css";
import "./ui/base.css";
import "./ui/page.css";
import "./ui/thread.css";
import "./ui/message.css";
import "./ui/panels.css";
import "./ui/sheets.css";
import "./ui/knowledge.css";
import "./ui/flyout.css";
import { createPage } from "./view/page";
import { createRecords } from "./view/records";
import { browserStorage } from "./view/settings";

const page = createPage({
  createClient: (options) => new Antiphon({ ...options, showsRecording: true }),
  now: Date.now,
  local: browserStorage("localStorage"),
  tab: browserStorage("sessionStorage"),
  makeRecords: (token) => createRecords(document.baseURI, token),
});

// Rendered before there is a connection: typing works at once, and is sent once connected.
render(
  <PageContext.Provider value={page}>
    <App />
  </PageContext.Provider>,
  document.getElementById("app")!,
);
page.connect();
