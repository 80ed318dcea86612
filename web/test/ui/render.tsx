import { render } from "preact";
import { act } from "preact/test-utils";
import { App } from "../../src/ui/App";
import { PageContext } from "../../src/ui/hooks";
import { createTestPage, type TestPage } from "./fake-client";
import type { TestMessage } from "../view/messages";

export interface RenderedApp extends TestPage {
  root: HTMLElement;
  receive(...messages: TestMessage[]): Promise<void>;
  click(selector: string): Promise<void>;
  /** The text content, with white space collapsed. */
  text(selector?: string): string;
  end(): void;
}

export async function renderApp(options: Parameters<typeof createTestPage>[0] = {}): Promise<RenderedApp> {
  const testPage = createTestPage(options);
  const root = document.createElement("div");
  document.body.append(root);
  await act(() => {
    render(
      <PageContext.Provider value={testPage.page}>
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
    ...testPage,
    root,
    receive: (...messages) => act(() => testPage.client().receive(...messages)) as Promise<void>,
    click: (selector) => act(() => find(selector).click()) as Promise<void>,
    text: (selector) => (selector === undefined ? root : find(selector)).textContent!.replaceAll(/\s+/g, " ").trim(),
    end() {
      render(null, root);
      root.remove();
    },
  };
}
