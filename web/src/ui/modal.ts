import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";

/** Shows the dialog above everything, and keeps the focus in it. Its element is gone before it could be closed, so the focus is given back here. */
export function useModal(dialog: RefObject<HTMLDialogElement | null>): void {
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
}
