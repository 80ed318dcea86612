import { render } from "preact";
import { act } from "preact/test-utils";
import { App } from "../../src/ui/App";
import { PageContext } from "../../src/ui/hooks";
import { setStage, type Stage } from "./fake-client";
import type { Told } from "../view/told";

export interface Drawn extends Stage {
  root: HTMLElement;
  tell(...messages: Told[]): Promise<void>;
  click(selector: string): Promise<void>;
  /** What can be read, blanks as one. */
  text(selector?: string): string;
  end(): void;
}

export async function draw(options: Parameters<typeof setStage>[0] = {}): Promise<Drawn> {
  const stage = setStage(options);
  const root = document.createElement("div");
  document.body.append(root);
  await act(() => {
    render(
      <PageContext.Provider value={stage.page}>
        <App />
      </PageContext.Provider>,
      root,
    );
  });
  const find = (selector: string) => {
    const found = root.querySelector<HTMLElement>(selector);
    if (found === null) throw new Error(`Nothing is ${selector} in: ${root.innerHTML}`);
    return found;
  };
  return {
    ...stage,
    root,
    tell: (...messages) => act(() => stage.client().tell(...messages)) as Promise<void>,
    click: (selector) => act(() => find(selector).click()) as Promise<void>,
    text: (selector) => (selector === undefined ? root : find(selector)).textContent!.replaceAll(/\s+/g, " ").trim(),
    end() {
      render(null, root);
      root.remove();
    },
  };
}
