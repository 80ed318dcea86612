import { useRef } from "preact/hooks";
import { MAX_TEXT } from "../client/wire";
import { isBusy } from "../view/format";
import { usePage, useSelector } from "./hooks";
import { Icon } from "./Icon";

export const COMPOSER_ID = "composer";

/** The message box. Typing works at any time: in a call, during an answer, and without a connection. */
export function Composer() {
  const page = usePage();
  const isBlocked = useSelector((state) => state.block !== null);
  const isHeld = useSelector((state) => state.talk === "held");
  const canStop = useSelector(isBusy);
  const text = useSelector((state) => state.draft);
  const area = useRef<HTMLTextAreaElement>(null);

  const setText = (draft: string) => page.dispatch({ type: "draft_changed", text: draft });

  function send(): void {
    page.say(text);
    setText("");
    area.current?.focus();
  }

  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <div class="composer-box" data-text={`${text}\n`}>
        <textarea
          ref={area}
          id={COMPOSER_ID}
          rows={1}
          value={text}
          maxLength={MAX_TEXT}
          disabled={isBlocked}
          placeholder={isBlocked ? "Paused" : isHeld ? "Listening…" : "Type a message"}
          aria-label="Message"
          autocomplete="off"
          enterkeyhint="send"
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            // An Enter that confirms a word in an input method editor does not send.
            if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            send();
          }}
        />
      </div>
      {canStop && text.trim() === "" ? (
        <button type="button" class="send" aria-label="Stop the answer" title="Stop (Escape)" onClick={page.interrupt}>
          <Icon name="stop" />
        </button>
      ) : (
        <button type="submit" class="send" aria-label="Send" disabled={isBlocked || text.trim() === ""}>
          <Icon name="send" />
        </button>
      )}
    </form>
  );
}
