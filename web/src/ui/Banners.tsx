import { useEffect, useState } from "preact/hooks";
import type { Connection } from "../client/antiphon";
import { formatCountdown } from "../view/words";
import { useCountdown } from "./clock";
import { usePage, usePart } from "./context";
import { Icon } from "./Icon";

const TOKEN_NEEDED = 4401;
const TAKEN_OVER = 4409;

/** What stands between the person and the conversation, and what to do about it. */
export function Banners() {
  return (
    <div class="banners">
      <Blocked />
      <ConnectionBanner />
      <GoingAway />
      <ErrorBanner />
      <MicrophoneBanner />
      <SoundBanner />
    </div>
  );
}

function Blocked() {
  const block = usePart((state) => state.block);
  return block === null ? null : <BlockCountdown key={block.until} {...block} />;
}

function BlockCountdown({ until, message }: { until: number; message: string }) {
  const page = usePage();
  const left = useCountdown(until, () => {
    page.dispatch({ type: "block_over" });
    page.connect();
  });
  return (
    <div class="banner" data-tone="bad" role="alert">
      <p>
        {message} <span class="quiet">You can write and talk again in </span>
        <span class="countdown" role="timer">{formatCountdown(left)}</span>
      </p>
    </div>
  );
}

function ConnectionBanner() {
  const connection = usePart((state) => state.connection);
  const isBlocked = usePart((state) => state.block !== null);
  if (connection.state === "waiting") return <Waiting connection={connection} />;
  if (connection.state === "closed" && !isBlocked) return <Closed connection={connection} />;
  return null;
}

function Waiting({ connection }: { connection: Connection & { state: "waiting" } }) {
  const page = usePage();
  return (
    <div class="banner" data-tone="busy">
      <p>
        The connection was lost. Trying again in {Math.ceil(connection.retryInMs / 1000)} s.{" "}
        <span class="quiet">What you write is kept and sent then.</span>
      </p>
      <button type="button" class="button" onClick={() => page.connect()}>Now</button>
    </div>
  );
}

function Closed({ connection }: { connection: Connection & { state: "closed" } }) {
  const page = usePage();
  if (connection.code === TOKEN_NEEDED) return <TokenForm />;
  const isElsewhere = connection.code === TAKEN_OVER;
  return (
    <div class="banner" data-tone="bad" role="alert">
      <p>{isElsewhere ? "This conversation goes on in another window." : `Disconnected: ${connection.reason}`}</p>
      <button type="button" class="button" onClick={() => page.connect()}>
        {isElsewhere ? "Use it here" : "Connect"}
      </button>
    </div>
  );
}

export function TokenForm() {
  const page = usePage();
  const [token, setToken] = useState("");
  return (
    <form
      class="banner"
      data-tone="busy"
      onSubmit={(event) => {
        event.preventDefault();
        if (token.trim() !== "") page.connect(token.trim());
      }}
    >
      <label for="token">This server asks for a token. Its owner makes one with <code>antiphon token new</code>.</label>
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

function GoingAway() {
  const goAway = usePart((state) => state.goAway);
  return goAway === null ? null : <AwayCountdown key={goAway.at} {...goAway} />;
}

function AwayCountdown({ at, reason }: { at: number; reason: string }) {
  const left = useCountdown(at, () => undefined);
  return (
    <div class="banner" data-tone="busy">
      <p>
        {reason || "The server will restart."} The connection is renewed in {formatCountdown(left)}; the conversation goes on.
      </p>
    </div>
  );
}

function ErrorBanner() {
  const page = usePage();
  const error = usePart((state) => state.error);
  return (
    <div role="alert">
      {error !== null && (
        <div class="banner" data-tone="bad">
          <p>
            {error.text}
            {error.isRetryable && <span class="quiet"> It may work if you try again.</span>}
          </p>
          <Dismiss onClick={() => page.dispatch({ type: "error_dismissed" })} />
        </div>
      )}
    </div>
  );
}

function MicrophoneBanner() {
  const page = usePage();
  const error = usePart(({ microphone }) => (microphone.state === "failed" ? microphone.error : null));
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

/** Why nothing is heard. The answers are there to read in any case. */
function SoundBanner() {
  const page = usePage();
  const sound = usePart((state) => state.sound);
  const isSpeaking = usePart((state) => state.server === "speaking");
  const [isLate, setLate] = useState(false);
  const isBlocked = sound.state === "blocked";
  useEffect(() => {
    setLate(false);
    // A context that has just been made is not running for a moment.
    const timer = isBlocked ? setTimeout(() => setLate(true), 800) : undefined;
    return () => clearTimeout(timer);
  }, [isBlocked]);
  const isSilent = sound.state === "failed" && isSpeaking;
  if (!(isBlocked && isLate) && !isSilent) return null;
  return (
    <div class="banner" data-tone="busy">
      <p>{sound.state === "failed" ? sound.message : "The browser holds back the sound until you touch the page."}</p>
      {isBlocked && <button type="button" class="button" onClick={() => page.client().unlockSound()}>Let me hear it</button>}
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
