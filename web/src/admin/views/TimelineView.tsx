import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { type Api, type CallStart, type Latency, RequestError, type Timeline, type TimelineEntry, type ToolRun } from "../api";
import { useAdmin, useLoaded } from "../context";
import { describeEnergy, describeOutcome, describeRun, formatDuration, formatMs, formatTime, stagesOf } from "../format";
import { Badge, Folded, Heading, LoadState, More, Time } from "../parts";
import { PlayFrom, type Sound, useSound } from "../../ui/sound";
import { linkTo } from "../routes";

/** A conversation in the order of time. It is not refreshed by itself, since each look at it is audited. */
export function TimelineView({ id }: { id: string }) {
  const { api } = useAdmin();
  const loaded = useLoaded<Timeline>((from) => from.timeline(id, null), `timeline ${id}`, false);
  const earlier = useEarlier(api, loaded.data);
  const sound = useRecordings(id);
  const conversation = loaded.data?.conversation;
  return (
    <>
      <Heading title={conversation?.title || "Conversation"}>
        <button type="button" class="small-button" onClick={loaded.reload}>Refresh</button>
      </Heading>
      <p class="crumbs">
        <a href={linkTo("conversations")}>All conversations</a>
        {conversation !== undefined && (
          <>
            <a href={linkTo("conversations", null, { user: conversation.user })}>Conversations of {conversation.user}</a>
            <a href={linkTo("audit", null, { conversation: id })}>Audit of this conversation</a>
          </>
        )}
      </p>
      <LoadState loaded={loaded} />
      {conversation !== undefined && (
        <>
          <dl class="facts">
            <div><dt>User</dt><dd>{conversation.user}</dd></div>
            <div><dt>Begun</dt><dd><Time at={conversation.created_ms} /></dd></div>
            <div><dt>Last turn</dt><dd><Time at={conversation.updated_ms} /></dd></div>
            <div><dt>Id</dt><dd><code>{id}</code></dd></div>
          </dl>
          <More more={earlier.more} label="Show earlier entries" />
          {earlier.problem !== "" && <p class="trouble" role="alert">{earlier.problem}</p>}
          {earlier.entries.length === 0 ? (
            <p class="empty">Nothing was said in this conversation, or it was cleared.</p>
          ) : (
            <ol class="timeline" aria-label="Timeline">
              {earlier.entries.map((entry, index) => <Entry key={`${entry.kind} ${entry.at_ms} ${index}`} entry={entry} sound={sound} />)}
            </ol>
          )}
          {(sound.place !== null || sound.problem !== "") && (
            <div class="sound">
              {sound.player}
              {sound.problem !== "" && <p class="trouble" role="alert">{sound.problem}</p>}
            </div>
          )}
        </>
      )}
    </>
  );
}

/** The entries of the newest page, and of the pages before it as far as they were asked for. */
function useEarlier(api: Api, newest: Timeline | null) {
  const [loaded, setLoaded] = useState<{ of: Timeline; entries: TimelineEntry[]; earlier: string | null } | null>(null);
  const [problem, setProblem] = useState("");
  const own = loaded !== null && loaded.of === newest ? loaded : null;
  const cursor = own === null ? (newest?.earlier ?? null) : own.earlier;
  function more(): void {
    if (newest === null) return;
    api.timeline(newest.conversation.id, cursor).then(
      ({ entries, earlier }) => {
        setProblem("");
        setLoaded({ of: newest, entries: [...entries, ...(own?.entries ?? [])], earlier });
      },
      (error: Error) => setProblem(error.message),
    );
  }
  return { entries: [...(own?.entries ?? []), ...(newest?.entries ?? [])], problem, more: cursor === null ? null : more };
}

/** The recordings of a conversation. An audio element cannot show a token, so they are fetched as a whole. */
function useRecordings(conversation: string): Sound {
  const { api, refuse } = useAdmin();
  return useSound(async (recording) => {
    try {
      return URL.createObjectURL(await api.recording(conversation, recording));
    } catch (error) {
      if (error instanceof RequestError && error.isRefused) refuse(error.message);
      throw error;
    }
  }, "The recording of the call");
}

function Entry({ entry, sound }: { entry: TimelineEntry; sound: Sound }) {
  switch (entry.kind) {
    case "said":
      return (
        <Line
          entry={entry}
          tone={entry.role === "user" ? "user" : "answer"}
          who={entry.role === "user" ? "User" : "Assistant"}
          note={entry.spoken ? "spoken" : ""}
          action={entry.place != null && <PlayFrom sound={sound} place={entry.place} />}
        >
          <p class="words">{entry.text.trim()}</p>
        </Line>
      );
    case "tool":
      return <ToolLine run={entry} />;
    case "latency":
      return <LatencyLine latency={entry} />;
    case "energy":
      return <Line entry={entry} tone={entry.level < entry.previous ? "busy" : "calm"} who="Model"><p>{describeEnergy(entry)}</p></Line>;
    case "upstream":
      return <Line entry={entry} tone="busy" who="Upstream" note={entry.code.replaceAll("_", " ")}><p>{entry.text}</p></Line>;
    case "call":
      return <CallLine call={entry} sound={sound} />;
  }
}

interface LineProps {
  entry: TimelineEntry;
  tone: string;
  who: string;
  note?: string;
  action?: ComponentChildren;
  children: ComponentChildren;
}

function Line({ entry, tone, who, note = "", action, children }: LineProps) {
  return (
    <li class="moment" data-kind={entry.kind} data-tone={tone}>
      <span class="moment-time"><Time at={entry.at_ms} /></span>
      <div class="moment-body">
        <p class="moment-who">{who}{note !== "" && <span class="faint"> {note}</span>} {action}</p>
        {children}
      </div>
    </li>
  );
}

function ToolLine({ run }: { run: ToolRun }) {
  const outcome = describeOutcome(run);
  const note = describeRun(run);
  return (
    <Line entry={run} tone={outcome.tone} who="Tool">
      <p class="tool-run">
        <code>{run.tool || "–"}</code>
        <Badge {...outcome} />
        {run.duration_ms !== null && run.duration_ms !== undefined && run.event == null && <span class="figure">{formatMs(run.duration_ms)}</span>}
        {note !== "" && <span class="faint">{note}</span>}
        {run.tool_version && <span class="faint">version {run.tool_version}</span>}
      </p>
      {(run.args ?? run.result ?? null) !== null && (
        <div class="folds">
          {run.args != null && <Folded label="Arguments" of={run.tool} value={run.args} />}
          {run.result != null && <Folded label="Result" of={run.tool} value={run.result} />}
        </div>
      )}
    </Line>
  );
}

/** The bar is for the eye alone: the words have every figure. */
function LatencyLine({ latency }: { latency: Latency }) {
  const stages = stagesOf(latency);
  return (
    <Line entry={latency} tone="calm" who="Latency">
      <div class="latency">
        <span class="figure">{formatMs(latency.total_ms)}</span>
        <span class="latency-bar" aria-hidden="true">
          {stages.map(({ name, ms }, index) => <span key={name} data-stage={index} style={{ flexGrow: Math.max(ms, 1) }} />)}
        </span>
        <span class="faint">
          {[...stages.map(({ name, ms }) => `${name} ${formatMs(ms)}`), ...(latency.stt_ms == null ? [] : [`recognition ${formatMs(latency.stt_ms)}`])].join(" · ")}
        </span>
      </div>
    </Line>
  );
}

function CallLine({ call, sound }: { call: CallStart; sound: Sound }) {
  const facts = [
    call.duration_ms === null ? "not ended" : formatDuration(call.duration_ms),
    call.models.join(", "),
    call.energy_path.length > 1 ? `energy ${call.energy_path.join(" → ")}` : "",
  ].filter((part) => part);
  return (
    <Line entry={call} tone="good" who="Call" note={facts.join(" · ")}>
      {call.summary !== "" && <p class="faint">{call.summary}</p>}
      {call.recordings.map(({ id, started_ms, duration_ms }) =>
        duration_ms === null ? (
          <p key={id} class="faint">A recording of this call is not complete yet.</p>
        ) : (
          <button key={id} type="button" class="small-button" onClick={() => sound.play({ recording: id, at_ms: 0 })}>
            {`Play the recording of ${formatTime(started_ms, Date.now())} (${formatDuration(duration_ms)})`}
          </button>
        ),
      )}
    </Line>
  );
}
