import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { CallControls } from "./Dock";
import { Icon } from "./Icon";
import { useModal } from "./hooks";
import { Reminders } from "./Reminders";

interface SheetProps {
  title: string;
  side: "left" | "right" | "center";
  isWide?: boolean;
  close: () => void;
  children: ComponentChildren;
}

/** A modal panel. The browser closes it on Escape. */
export function Sheet({ title, side, isWide = false, close, children }: SheetProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useModal(dialog);
  return (
    <dialog
      ref={dialog}
      class={`sheet sheet-${side}${isWide ? " sheet-wide" : ""}`}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClick={(event) => {
        // Only clicks on the backdrop have the dialog itself as their target.
        if (event.target === dialog.current) close();
      }}
    >
      <div class="sheet-inside">
        <header class="sheet-head">
          <h2>{title}</h2>
          <button type="button" class="icon-button" aria-label="Close" onClick={close}>
            <Icon name="close" />
          </button>
        </header>
        <Reminders />
        <div class="sheet-body">{children}</div>
        <CallControls />
      </div>
    </dialog>
  );
}
