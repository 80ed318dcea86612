import type { Citation } from "../client/antiphon";
import { frameUrl } from "../view/urls";
import { usePage } from "./hooks";

/** The sources of an answer, as numbered links. A source without an address is a record of the knowledge base. */
export function Sources({ citations }: { citations: readonly Citation[] }) {
  const page = usePage();
  if (citations.length === 0) return null;
  return (
    <ol class="sources" aria-label="Sources">
      {citations.map(({ id, title, url }, index) => {
        const address = frameUrl(url);
        return (
          <li key={index}>
            {address === null ? (
              <button type="button" class="link-button" onClick={() => page.dispatch({ type: "record_opened", id })}>{title || id}</button>
            ) : (
              <a href={address} target="_blank" rel="noopener noreferrer">{title || new URL(address).host}</a>
            )}
          </li>
        );
      })}
    </ol>
  );
}
