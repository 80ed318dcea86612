import { useEffect, useState } from "preact/hooks";
import type { Connection } from "../client/antiphon";
import { TOKEN_NEEDED } from "../view/state";
import { formatCountdown } from "../view/format";
import { useCountdown, usePage, useSelector } from "./hooks";
import { Icon } from "./Icon";

const TAKEN_OVER = 4409;
const TOKEN_REFUSED = "This token was not accepted. It may be wrong or expired. Enter another one.";
/** How long the page says that it has reconnected. */
const RECONNECTED_MS = 4000;

/** What keeps the user from talking or typing, and what to do about it. */
export function Banners() {
  return (
    <div class="banners">
      <Blocked />
      <ConnectionBanner />
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

/** The state of the connection, in one place: about to close, lost, or restored. */
function ConnectionBanner() {
  const connection = useSelector((state) => state.connection);
  const goAway = useSelector((state) => state.goAway);
  const isBlocked = useSelector((state) => state.block !== null);
  const isReconnected = useSelector((state) => state.isReconnected);
  switch (connection.state) {
    case "closed":
      return isBlocked ? null : <Closed connection={connection} />;
    case "waiting":
      return <Lost isRestart={goAway !== null} retryInMs={connection.retryInMs} />;
    case "connecting":
      return connection.attempt > 0 ? <Lost isRestart={goAway !== null} retryInMs={0} /> : null;
    case "open":
      if (goAway !== null) return <GoingAway key={goAway.at} {...goAway} />;
      return isReconnected ? <Reconnected /> : null;
  }
}

function GoingAway({ at, reason }: { at: number; reason: string }) {
  const left = useCountdown(at, () => undefined);
  return (
    <div class="banner" data-tone="busy">
      <p>
        {reason || "The server is about to restart."} Reconnecting in {formatCountdown(left)}; your conversation will
        continue.
      </p>
    </div>
  );
}

function Lost({ isRestart, retryInMs }: { isRestart: boolean; retryInMs: number }) {
  const page = usePage();
  const isInCall = useSelector((state) => state.talk !== "off");
  const isTrying = retryInMs === 0;
  return (
    <div class="banner" data-tone="busy">
      <p>
        {isRestart ? "The server is restarting." : "Connection lost."}{" "}
        {isTrying ? "Trying again…" : `Trying again in ${Math.ceil(retryInMs / 1000)} s.`}{" "}
        <span class="quiet">
          {isInCall ? "You can't be heard until then, but what you type will be sent." : "What you type will be sent once you are back."}
        </span>
      </p>
      <button type="button" class="button" disabled={isTrying} onClick={() => page.connect()}>Try now</button>
    </div>
  );
}

function Reconnected() {
  const page = usePage();
  useEffect(() => {
    const timer = setTimeout(() => page.dispatch({ type: "reconnection_seen" }), RECONNECTED_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div class="banner" data-tone="good" role="status">
      <p>Reconnected. Your session continues.</p>
    </div>
  );
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
