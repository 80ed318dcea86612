import { useEffect, useState } from "preact/hooks";
import type { Connection } from "../client/antiphon";
import { EXHAUSTED } from "../client/events";
import { findExhausted } from "../view/energy";
import { type Episode, TOKEN_NEEDED } from "../view/state";
import { formatCountdown } from "../view/format";
import { Exhausted } from "./Energy";
import { useCountdown, usePage, useSelector } from "./hooks";
import { Icon } from "./Icon";

const TAKEN_OVER = 4409;
const TOKEN_REFUSED = "This token was not accepted. It may be wrong or expired. Enter another one.";

/** What keeps the user from talking or typing, and what to do about it. */
export function Banners() {
  return (
    <div class="banners">
      <Blocked />
      <ConnectionBanner />
      <EpisodeBanner />
      <ErrorBanner />
      <MicrophoneBanner />
      <SoundBanner />
    </div>
  );
}

function Blocked() {
  const block = useSelector((state) => state.block);
  return block === null ? null : <BlockCountdown key={block.until} {...block} />;
}

function BlockCountdown({ until, message }: { until: number; message: string }) {
  const page = usePage();
  const left = useCountdown(until, () => {
    page.dispatch({ type: "block_ended" });
    page.connect();
  });
  return (
    <div class="banner" data-tone="bad" role="alert">
      <p>
        {message} <span class="quiet">You can type and talk again in </span>
        <span class="countdown" role="timer">{formatCountdown(left)}</span>
      </p>
    </div>
  );
}

/** The connection was closed for good. Everything else about it is told by the line. */
function ConnectionBanner() {
  const connection = useSelector((state) => state.connection);
  const isBlocked = useSelector((state) => state.block !== null);
  return connection.state === "closed" && !isBlocked ? <Closed connection={connection} /> : null;
}

/** What happens to keep the conversation going: one line, whose words change with every step. */
function EpisodeBanner() {
  const episode = useSelector((state) => state.episode);
  return (
    <div role="status" aria-atomic="false" aria-label="Connection and model">
      {episode !== null && (
        <div class="banner" data-tone={episode.tone} data-step={episode.step}>
          <EpisodeText episode={episode} />
        </div>
      )}
    </div>
  );
}

function EpisodeText({ episode }: { episode: Episode }) {
  const page = usePage();
  const { key, step, text, code, durationMs } = episode;
  useEffect(() => {
    if (durationMs === null) return undefined;
    const timer = setTimeout(() => page.dispatch({ type: "episode_seen", key }), durationMs);
    return () => clearTimeout(timer);
  }, [key]);
  const exhausted = useSelector(findExhausted);
  if (step === "reconnecting") return <Reconnecting text={text} />;
  if (code === EXHAUSTED && exhausted !== null) return <p><Exhausted mode={exhausted} /></p>;
  return <p>{text}{step === "back" && <HeardAgain />}</p>;
}

function Reconnecting({ text }: { text: string }) {
  const page = usePage();
  const isInCall = useSelector((state) => state.talk !== "off");
  const waitS = useSelector(({ connection }) => (connection.state === "waiting" ? Math.ceil(connection.retryInMs / 1000) : 0));
  return (
    <>
      <p>
        {text}{" "}
        <span class="quiet">
          {isInCall ? "You can't be heard now. What you type will be sent." : "What you type will be sent."}
        </span>{" "}
        {waitS > 0 && <span class="quiet" role="timer" aria-live="off">Next attempt in {waitS} s.</span>}
      </p>
      <button type="button" class="button" disabled={waitS === 0} onClick={() => page.connect()}>Try now</button>
    </>
  );
}

function HeardAgain() {
  const isHeard = useSelector(({ talk, microphone }) => talk !== "off" && microphone.state === "on" && !microphone.muted);
  return isHeard ? <> You can be heard again.</> : null;
}

function Closed({ connection }: { connection: Connection & { state: "closed" } }) {
  const page = usePage();
  if (connection.code === TOKEN_NEEDED) return <TokenForm />;
  const isElsewhere = connection.code === TAKEN_OVER;
  return (
    <div class="banner" data-tone="bad" role="alert">
      <p>{isElsewhere ? "This conversation is open in another window." : `Disconnected: ${connection.reason}`}</p>
      <button type="button" class="button" onClick={() => page.connect()}>
        {isElsewhere ? "Use it here" : "Connect"}
      </button>
    </div>
  );
}

function TokenForm() {
  const page = usePage();
  const isRefused = useSelector((state) => state.isTokenRefused);
  const [token, setToken] = useState("");
  return (
    <form
      class="banner"
      data-tone={isRefused ? "bad" : "busy"}
      onSubmit={(event) => {
        event.preventDefault();
        if (token.trim() !== "") page.connect(token.trim());
      }}
    >
      <label for="token">
        {isRefused ? <span role="alert">{TOKEN_REFUSED}</span> : "This server requires a token."} Its owner can create one with <code>antiphon token new</code>.
      </label>
      <span class="banner-line">
        <input
          id="token"
          class="input"
          type="password"
          autocomplete="off"
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        <button type="submit" class="button primary">Connect</button>
      </span>
    </form>
  );
}

function ErrorBanner() {
  const page = usePage();
  const error = useSelector((state) => state.error);
  return (
    <div role="alert">
      {error !== null && (
        <div class="banner" data-tone="bad">
          <p>
            {error.text}
            {error.isRetryable && <span class="quiet"> Trying again may help.</span>}
          </p>
          <Dismiss onClick={() => page.dispatch({ type: "error_dismissed" })} />
        </div>
      )}
    </div>
  );
}

function MicrophoneBanner() {
  const page = usePage();
  const error = useSelector(({ microphone }) => (microphone.state === "failed" ? microphone.error : null));
  const [dismissed, setDismissed] = useState<Error | null>(null);
  if (error === null || dismissed === error) return null;
  const canRetry = error.code !== "insecure" && error.code !== "unsupported";
  return (
    <div class="banner" data-tone="bad" role="alert">
      <p>{error.message}</p>
      {canRetry && <button type="button" class="button" onClick={page.toggleTalk}>Try again</button>}
      <Dismiss onClick={() => setDismissed(error)} />
    </div>
  );
}

/** Why nothing can be heard. The answers can be read in any case. */
function SoundBanner() {
  const page = usePage();
  const sound = useSelector((state) => state.sound);
  const isSpeaking = useSelector((state) => state.server === "speaking");
  const [isLate, setLate] = useState(false);
  const isBlocked = sound.state === "blocked";
  useEffect(() => {
    setLate(false);
    // A new audio context takes a moment to start.
    const timer = isBlocked ? setTimeout(() => setLate(true), 800) : undefined;
    return () => clearTimeout(timer);
  }, [isBlocked]);
  const isSilent = sound.state === "failed" && isSpeaking;
  if (!(isBlocked && isLate) && !isSilent) return null;
  return (
    <div class="banner" data-tone="busy">
      <p>{sound.state === "failed" ? sound.message : "Your browser blocks sound until you interact with this page."}</p>
      {isBlocked && <button type="button" class="button" onClick={() => page.client().unlockSound()}>Turn on sound</button>}
    </div>
  );
}

function Dismiss({ onClick }: { onClick: () => void }) {
  return (
    <button type="button" class="icon-button" aria-label="Dismiss" onClick={onClick}>
      <Icon name="close" />
    </button>
  );
}
