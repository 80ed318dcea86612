import { useEffect } from "preact/hooks";
import type { Notice } from "../view/state";
import { usePage, useSelector } from "./hooks";
import { Icon } from "./Icon";

/** Toasts, the newest first. The list of notices keeps each of them. */
export function Notices() {
  const notices = useSelector((state) => state.notices);
  const toasts = notices.filter((notice) => notice.isToast).toReversed();
  return (
    <div class="toasts" role="status" aria-label="Notices">
      {toasts.map((notice) => <Toast key={notice.key} notice={notice} />)}
    </div>
  );
}

function Toast({ notice }: { notice: Notice }) {
  const page = usePage();
  const pass = () => page.dispatch({ type: "notice_dismissed", key: notice.key });
  useEffect(() => {
    const timer = setTimeout(pass, notice.durationMs);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div class="toast" data-kind={notice.kind}>
      <span>{notice.text}</span>
      <button type="button" class="icon-button" aria-label="Dismiss" onClick={pass}>
        <Icon name="close" />
      </button>
    </div>
  );
}
