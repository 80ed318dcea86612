import { useEffect, useState } from "preact/hooks";
import { type CallRecord, type ConversationEntry, isBeingSummarized, summaryOf } from "../view/records";
import { formatDuration } from "../view/format";
import { usePage, useSelector } from "./hooks";
import { ConfirmedButton } from "./ConfirmedButton";
import { Icon } from "./Icon";
import { Problem } from "./Problem";
import { Sheet } from "./Sheet";
import { PlayFrom, useSound } from "./sound";

/** How often to look for a summary that is being written. */
const LOOK_AGAIN_MS = 2000;

export function HistorySheet({ close }: { close: () => void }) {
  const page = usePage();
  return (
    <Sheet title="Conversations and calls" side="left" close={close}>
      <button
        type="button"
        class="button primary wide"
        onClick={() => {
          page.startNew();
          close();
        }}
      >
        <Icon name="plus" /> New conversation
      </button>
      <Conversations close={close} />
      <Calls close={close} />
    </Sheet>
  );
}

function Conversations({ close }: { close: () => void }) {
  const page = usePage();
  const current = useSelector((state) => state.conversationId);
  const [list, setList] = useState<ConversationEntry[] | null>(null);
  const [next, setNext] = useState<string | null>(null);
  const [problem, setProblem] = useState("");

  function show(before?: string): void {
    page.records.conversations(before).then(
      (found) => {
        setList((shown) => (before === undefined ? found.conversations : [...(shown ?? []), ...found.conversations]));
        setNext(found.next);
      },
      (error: Error) => setProblem(error.message),
    );
  }
  useEffect(() => show(), []);

  function remove(id: string): void {
    page.records.deleteConversation(id).then(
      () => {
        setList((shown) => (shown ?? []).filter((each) => each.id !== id));
        if (id === current) page.startNew();
      },
      (error: Error) => setProblem(error.message),
    );
  }

  return (
    <section class="group">
      <h3>Conversations</h3>
      <Problem text={problem} />
      {list === null && problem === "" && <p class="quiet">Loading…</p>}
      {list?.length === 0 && <p class="quiet">No conversations yet. Say or type something to start one.</p>}
      <ul class="list">
        {list?.map(({ id, title, updated_ms }) => (
          <li key={id} class="list-row" aria-current={id === current ? "true" : undefined}>
            <button
              type="button"
              class="list-main"
              onClick={() => {
                page.load(id);
                close();
              }}
            >
              <span class="list-title">{title || "Untitled"}</span>
              <span class="quiet">{formatDay(updated_ms)}{id === current && " · current"}</span>
            </button>
            <ConfirmedButton label="Delete" target={title || "Untitled"} act={() => remove(id)} />
          </li>
        ))}
      </ul>
      {next !== null && <button type="button" class="button wide" onClick={() => show(next)}>Show more</button>}
      <ConfirmedButton
        label="Clear conversation"
        act={() => {
          page.clear();
          close();
        }}
      />
    </section>
  );
}

function Calls({ close }: { close: () => void }) {
  const page = usePage();
  const [calls, setCalls] = useState<CallRecord[] | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isShown = true;
    function look(): void {
      page.records.calls().then(
        (found) => {
          if (!isShown) return;
          setCalls(found);
          if (found.some((call) => isBeingSummarized(call, page.now()))) timer = setTimeout(look, LOOK_AGAIN_MS);
        },
        (error: Error) => setProblem(error.message),
      );
    }
    look();
    return () => {
      isShown = false;
      clearTimeout(timer);
    };
  }, []);

  return (
    <section class="group">
      <h3>Calls</h3>
      <Problem text={problem} />
      {calls === null && problem === "" && <p class="quiet">Loading…</p>}
      {calls?.length === 0 && <p class="quiet">No calls yet.</p>}
      <ul class="list">
        {calls?.map((call) => (
          <Call key={call.id} call={call} close={close} />
        ))}
      </ul>
      {calls !== null && calls.length > 0 && (
        <ConfirmedButton
          label="Clear call history"
          act={() => {
            page.records.clearCalls().then(() => setCalls([]), (error: Error) => setProblem(error.message));
          }}
        />
      )}
    </section>
  );
}

function Call({ call, close }: { call: CallRecord; close: () => void }) {
  const page = usePage();
  const sound = useSound((recording) => page.records.recording(call.conversation_id, recording), "The recording of the call");
  const recordings = (call.recordings ?? []).filter((each) => each.duration_ms !== null);
  const places = new Map(recordings.flatMap(({ id, turns }) => turns.map(({ seq, at_ms }) => [seq, { recording: id, at_ms }])));
  return (
    <li class="call">
      <p class="quiet">{describeCall(call)}</p>
      <Summary call={call} />
      {call.transcript.length > 0 && (
        <details>
          <summary>Transcript</summary>
          {call.transcript.map(({ seq, role, content }) => {
            const place = places.get(seq);
            return (
              <p key={seq}>
                <strong>{role === "user" ? "You" : "Antiphon"}:</strong> {content}{" "}
                {place !== undefined && <PlayFrom sound={sound} place={place} />}
              </p>
            );
          })}
        </details>
      )}
      {recordings.map(({ id, started_ms, duration_ms }) => (
        <button key={id} type="button" class="button" onClick={() => sound.play({ recording: id, at_ms: 0 })}>
          Play the recording of {formatDay(started_ms)} ({formatDuration(duration_ms ?? 0)})
        </button>
      ))}
      {sound.player}
      <Problem text={sound.problem} />
      {call.duration_ms !== null && (
        <button
          type="button"
          class="button"
          onClick={() => {
            page.continueFrom(call);
            close();
          }}
        >
          Continue from here
        </button>
      )}
    </li>
  );
}

/** When it was, how long it took, and which models answered at which quality. */
function describeCall({ started_ms, duration_ms, models, energy_path: path = [] }: CallRecord): string {
  const parts = [formatDay(started_ms), duration_ms === null ? "in progress" : formatDuration(duration_ms)];
  if (models.length > 0) parts.push(models.join(", "));
  if (path.length > 1) parts.push(`model quality ${path.join(" → ")}`);
  return parts.join(" · ");
}

function Summary({ call }: { call: CallRecord }) {
  const page = usePage();
  const summary = summaryOf(call);
  if (summary !== null) return <p>{summary}</p>;
  if (call.duration_ms === null) return <p class="quiet">The summary is written when the call ends.</p>;
  return <p class="quiet">{isBeingSummarized(call, page.now()) ? "The summary is being written…" : "Summary unavailable."}</p>;
}

function formatDay(ms: number): string {
  return new Date(ms).toLocaleString(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
}
