import { useRef } from "preact/hooks";
import type { ImageItem } from "../view/state";
import { imageUrl, isSavable } from "../view/urls";
import { useModal, usePage, useSelector } from "./hooks";
import { Icon } from "./Icon";
import { Reminders } from "./Reminders";

/** A picture of the thread in full size. */
export function Viewer() {
  const image = useSelector((state) => state.items.find((item): item is ImageItem => item.kind === "image" && item.key === state.openImage));
  const url = image === undefined ? null : imageUrl(image.url, location.href);
  return image === undefined || url === null ? null : <Dialog key={image.key} url={url} caption={image.caption} />;
}

function Dialog({ url, caption }: { url: string; caption: string | null }) {
  const page = usePage();
  const dialog = useRef<HTMLDialogElement>(null);
  useModal(dialog);
  const close = () => page.dispatch({ type: "image_closed" });
  return (
    <dialog
      ref={dialog}
      class="viewer"
      aria-label={caption ?? "Picture"}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) close();
      }}
    >
      <div class="viewer-inside">
        <Reminders />
        <img src={url} alt={caption ?? "Image without a description"} referrerPolicy="no-referrer" />
        <footer class="viewer-foot">
          <p>{caption}</p>
          {isSavable(url, location.href) ? (
            <a class="button" href={url} download="">
              <Icon name="download" /> Save
            </a>
          ) : (
            <a class="button" href={url} target="_blank" rel="noopener noreferrer">Open {new URL(url).host}</a>
          )}
          <button type="button" class="icon-button" aria-label="Close" onClick={close}>
            <Icon name="close" />
          </button>
        </footer>
      </div>
    </dialog>
  );
}
