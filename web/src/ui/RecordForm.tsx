import { useEffect, useRef, useState } from "preact/hooks";
import { EMPTY_DRAFT, NAMESPACES, type RecordDraft, toRecord, TYPES } from "../view/knowledge";
import { usePage, useSelector } from "./hooks";
import { Icon } from "./Icon";
import { Problem } from "./Problem";

/** The event of a change in any kind of field. */
type InputEvent = { currentTarget: { value: string } };

const INCOMPLETE = "A record needs a title and a text.";

/** A form for a new record. What was written is kept when the panel is closed. */
export function RecordForm({ added, back }: { added: (id: string) => void; back: () => void }) {
  const page = usePage();
  const draft = useSelector((state) => state.recordDraft);
  const [problem, setProblem] = useState("");
  const [isSending, setSending] = useState(false);
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.focus(), []);

  function send(): void {
    const record = toRecord(draft);
    if (record.title === "" || record.body === "") {
      setProblem(INCOMPLETE);
      return;
    }
    setProblem("");
    setSending(true);
    page.records.knowledge.add(record).then(
      ({ id }) => {
        page.dispatch({ type: "record_draft_changed", changed: EMPTY_DRAFT });
        added(id);
      },
      (error: Error) => {
        setProblem(error.message);
        setSending(false);
      },
    );
  }

  const field = (name: keyof RecordDraft) => ({
    name,
    value: draft[name],
    onInput: (event: InputEvent) =>
      page.dispatch({ type: "record_draft_changed", changed: { [name]: event.currentTarget.value } }),
  });
  return (
    <form
      class="record"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (!isSending) send();
      }}
    >
      <div class="record-head">
        <button type="button" class="quiet-button" onClick={back}>
          <Icon name="back" /> <span>All records</span>
        </button>
      </div>
      <h3 class="record-title">New record</h3>
      <label class="field">
        <span>Title</span>
        <input ref={first} class="input" required autocomplete="off" {...field("title")} />
      </label>
      <label class="field">
        <span>Text <span class="quiet">Markdown works</span></span>
        <textarea class="input record-body" required rows={6} {...field("body")} />
      </label>
      <div class="record-fields">
        <label class="field">
          <span>Type</span>
          <Choice names={TYPES} {...field("type")} />
        </label>
        <label class="field">
          <span>Who may read it</span>
          <Choice names={NAMESPACES} {...field("namespace")} />
        </label>
      </div>
      <label class="field">
        <span>Tags <span class="quiet">optional, with commas between them</span></span>
        <input class="input" autocomplete="off" {...field("tags")} />
      </label>
      <label class="field">
        <span>Link <span class="quiet">optional</span></span>
        <input class="input" type="url" autocomplete="off" placeholder="https://" {...field("url")} />
      </label>
      <Problem text={problem} />
      <button type="submit" class="button primary wide" disabled={isSending}>{isSending ? "Adding…" : "Add record"}</button>
    </form>
  );
}

interface ChoiceProps {
  /** The options, with the names that people see. */
  names: Readonly<Record<string, string>>;
  name: string;
  value: string;
  onInput: (event: InputEvent) => void;
}

function Choice({ names, ...field }: ChoiceProps) {
  return (
    <select class="select" {...field}>
      {Object.entries(names).map(([value, label]) => <option key={value} value={value}>{label}</option>)}
    </select>
  );
}
