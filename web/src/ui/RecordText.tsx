import { useEffect, useRef, useState } from "preact/hooks";
import { describeRecord, type KnowledgeRecord } from "../view/knowledge";
import { frameUrl } from "../view/urls";
import { ConfirmedButton } from "./ConfirmedButton";
import { CopyButton } from "./CopyButton";
import { usePage } from "./hooks";
import { Icon } from "./Icon";
import { Markdown } from "./Markdown";
import { Problem } from "./Problem";

interface RecordTextProps {
  id: string;
  back: () => void;
  removed: (id: string) => void;
  /** Searches for a tag. */
  find: (tag: string) => void;
}

/** A record of the knowledge base, whole. */
export function RecordText({ id, back, removed, find }: RecordTextProps) {
  const page = usePage();
  const [record, setRecord] = useState<KnowledgeRecord | null>(null);
  const [problem, setProblem] = useState("");
  const [attempt, setAttempt] = useState(0);
  const heading = useRef<HTMLHeadingElement>(null);

  useEffect(() => {
    let isShown = true;
    setProblem("");
    page.records.knowledge.read(id).then(
      (found) => isShown && setRecord(found),
      (error: Error) => isShown && setProblem(error.message),
    );
    return () => {
      isShown = false;
    };
  }, [id, attempt]);
  // Screen readers read on from here.
  useEffect(() => heading.current?.focus(), [record]);

  function remove(): void {
    page.records.knowledge.remove(id).then(() => removed(id), (error: Error) => setProblem(error.message));
  }

  const address = frameUrl(record?.url);
  return (
    <article class="record">
      <div class="record-head">
        <button type="button" class="quiet-button" onClick={back}>
          <Icon name="back" /> <span>All records</span>
        </button>
        {record !== null && <CopyButton text={() => record.body} label="Copy text" />}
      </div>
      <Problem text={problem} retry={record === null ? () => setAttempt(attempt + 1) : undefined} />
      {record === null && problem === "" && <p class="quiet" role="status">Loading…</p>}
      {record !== null && (
        <>
          <h3 ref={heading} tabIndex={-1} class="record-title">{record.title || "Untitled"}</h3>
          <p class="quiet">{describeRecord(record)}</p>
          {address !== null && <p><a href={address} target="_blank" rel="noopener noreferrer">{address}</a></p>}
          {(record.tags ?? []).length > 0 && (
            <ul class="tags" aria-label="Tags">
              {record.tags.map((tag) => (
                <li key={tag}>
                  <button type="button" class="pill" onClick={() => find(tag)}>{tag}</button>
                </li>
              ))}
            </ul>
          )}
          <Markdown text={record.body} />
          {record.writable !== false && <ConfirmedButton label="Delete record" act={remove} />}
        </>
      )}
    </article>
  );
}
