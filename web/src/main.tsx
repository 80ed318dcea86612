import { render } from "preact";

render(<p>Antiphon</p>, document.getElementById("app")!);
