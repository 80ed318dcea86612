import { useEffect, useRef } from "preact/hooks";
import type { Confirmation as Question } from "../view/state";
import { formatCountdown, titleTool } from "../view/format";
import { useCountdown, useModal, usePage, useSelector } from "./hooks";
import { Reminders } from "./Reminders";
import { ArgumentTable } from "./ToolCard";

/** Shows one confirmation at a time, the oldest first. */
export function Confirmation() {
  const question = useSelector((state) => state.confirmations[0]);
  return question === undefined ? null : <Dialog key={question.token} question={question} />;
}

function Dialog({ question }: { question: Question }) {
  const page = usePage();
  const dialog = useRef<HTMLDialogElement>(null);
  const cancel = useRef<HTMLButtonElement>(null);
  const { token } = question;
  const left = useCountdown(question.expiresAt, () => page.dispatch({ type: "confirmation_expired", token }));

  useModal(dialog);
  useEffect(() => {
    // Users who keep typing without looking must not approve by accident.
    cancel.current?.focus();
  }, []);

  return (
    <dialog
      ref={dialog}
      class="sheet sheet-center confirmation"
      role="alertdialog"
      aria-labelledby="confirmation-title"
      aria-describedby="confirmation-preview"
      onCancel={(event) => {
        event.preventDefault();
        page.confirm(token, false);
      }}
    >
      <div class="sheet-inside">
        <header class="sheet-head">
          <h2 id="confirmation-title">Approve this action?</h2>
          <span class="countdown" role="timer" aria-label="Time left">{formatCountdown(left)}</span>
        </header>
        <Reminders />
        <div class="sheet-body">
          <p id="confirmation-preview" class="preview">{question.preview}</p>
          <p class="tool-label">This is exactly what will run: {titleTool({ title: question.title, name: question.tool })}</p>
          <ArgumentTable args={question.args} />
        </div>
        <footer class="sheet-foot">
          <button ref={cancel} type="button" class="button" onClick={() => page.confirm(token, false)}>
            Cancel
          </button>
          <button type="button" class="button primary" onClick={() => page.confirm(token, true)}>
            Approve
          </button>
        </footer>
      </div>
    </dialog>
  );
}
