import { render } from "preact";
import "../ui/themes.css";
import "../ui/base.css";
import { browserStorage } from "../view/settings";
import { App } from "./App";
import "./admin.css";
import "./tables.css";
import "./timeline.css";
import { createApi } from "./api";

render(
  <App
    makeApi={(token) => createApi(document.baseURI, token)}
    local={browserStorage("localStorage")}
    tab={browserStorage("sessionStorage")}
  />,
  document.getElementById("app")!,
);
