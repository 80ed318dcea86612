import { useEffect, useState } from "preact/hooks";
import type { Device, Devices } from "../client/antiphon";
import type { VoiceEntry } from "../view/records";
import { type Settings, type Theme, THEMES } from "../view/settings";
import { nameKey } from "../view/format";
import { usePage, useSelector } from "./hooks";
import { allowNotifications, canNotify } from "./notifier";
import { Sheet } from "./Sheet";

const THEME_NAMES: Readonly<Record<Theme, string>> = {
  midnight: "Midnight",
  redroom: "Red room",
  pink: "Pink",
  babyblue: "Baby blue",
  teal: "Teal",
  emerald: "Emerald",
  sunset: "Sunset",
  cyberpunk: "Cyberpunk",
  ocean: "Ocean",
  rose: "Rose",
};

export function SettingsSheet({ close }: { close: () => void }) {
  const canTalk = useSelector((state) => state.hasVoice !== false);
  return (
    <Sheet title="Settings" side="right" close={close}>
      <Appearance />
      {canTalk && <Speech />}
      {canTalk && <SoundDevices />}
      {canTalk && <Conversation />}
      <Reminding hasVolume={!canTalk} />
      <Access />
    </Sheet>
  );
}

function Appearance() {
  const page = usePage();
  const { theme } = page.settings.value;
  return (
    <section class="group">
      <h3 id="themes">Theme</h3>
      <div class="swatches" role="radiogroup" aria-labelledby="themes">
        {(["system", ...THEMES] as const).map((name) => (
          <label key={name} class="swatch" data-theme={name === "system" ? undefined : name}>
            <input
              type="radio"
              name="theme"
              class="visually-hidden"
              checked={theme === name}
              onChange={() => page.change({ theme: name })}
            />
            <span class="swatch-dot" />
            <span class="swatch-name">{name === "system" ? "System" : THEME_NAMES[name]}</span>
          </label>
        ))}
      </div>
      <Toggle setting="reducedMotion" label="Reduce motion" />
      <Toggle setting="timestamps" label="Show timestamps" />
    </section>
  );
}

function Speech() {
  const page = usePage();
  const { voice } = page.settings.value;
  const [voices, setVoices] = useState<VoiceEntry[]>([]);
  useEffect(() => {
    page.records.voices().then(setVoices, () => undefined);
  }, []);
  return (
    <section class="group">
      <h3>Speech</h3>
      <div class="field">
        <label for="voice">Voice</label>
        <span class="field-line">
          <select id="voice" class="select" value={voice} onChange={(event) => page.change({ voice: event.currentTarget.value })}>
            <option value="">Server default</option>
            {voices.map(({ id, name, language }) => <option key={id} value={id}>{name} ({language})</option>)}
          </select>
          <button type="button" class="button" onClick={() => page.client().testAudio(voice || undefined)}>Play sample</button>
        </span>
      </div>
      <Range setting="speed" label="Speed" least={50} most={200} step={5} />
      <Range setting="volume" label="Volume" least={0} most={100} step={1} />
      <Toggle setting="captions" label="Show captions while I speak" />
      <Toggle setting="greeting" label="Greet me at the start of a call" />
    </section>
  );
}

function SoundDevices() {
  const page = usePage();
  const [devices, setDevices] = useState<Devices>({ inputs: [], outputs: [] });
  useEffect(() => {
    page.client().devices().then(setDevices, () => undefined);
    return page.client().on("devices", setDevices);
  }, []);
  return (
    <section class="group">
      <h3>Devices</h3>
      <DeviceField setting="input" label="Microphone" devices={devices.inputs} />
      {devices.outputs.length > 0 && <DeviceField setting="output" label="Speaker" devices={devices.outputs} />}
      <p class="quiet">Device names appear once you allow microphone access.</p>
    </section>
  );
}

function DeviceField({ setting, label, devices }: { setting: "input" | "output"; label: string; devices: Device[] }) {
  const page = usePage();
  return (
    <label class="field">
      <span>{label}</span>
      <select
        class="select"
        value={page.settings.value[setting]}
        onChange={(event) => page.change({ [setting]: event.currentTarget.value })}
      >
        <option value="">System default</option>
        {devices.map(({ id, label: name }, index) => <option key={id} value={id}>{name || `${label} ${index + 1}`}</option>)}
      </select>
    </label>
  );
}

function Conversation() {
  const page = usePage();
  const { talkKey } = page.settings.value;
  const [isAsking, setAsking] = useState(false);
  return (
    <section class="group">
      <h3>Keyboard</h3>
      <div class="field">
        <span id="talk-key">Push-to-talk</span>
        <button
          type="button"
          class="button"
          aria-describedby="talk-key"
          aria-pressed={isAsking}
          onClick={() => setAsking(true)}
          onBlur={() => setAsking(false)}
          onKeyDown={(event) => {
            if (!isAsking) return;
            event.preventDefault();
            event.stopPropagation();
            if (event.key !== "Escape" && event.key !== "Tab") page.change({ talkKey: event.code });
            setAsking(false);
          }}
        >
          {isAsking ? "Press a key…" : nameKey(talkKey)}
        </button>
      </div>
      <p class="quiet">Press ? on the page to see all shortcuts.</p>
    </section>
  );
}

/** A server without a voice rings too, so that the volume must be here. */
function Reminding({ hasVolume }: { hasVolume: boolean }) {
  const page = usePage();
  const { notifications } = page.settings.value;
  const [isRefused, setRefused] = useState(false);

  async function turn(isOn: boolean): Promise<void> {
    const isAllowed = isOn && (await allowNotifications());
    setRefused(isOn && !isAllowed);
    page.change({ notifications: isAllowed });
  }

  return (
    <section class="group">
      <h3>Reminders, timers and alarms</h3>
      {hasVolume && <Range setting="volume" label="Volume" least={0} most={100} step={1} />}
      <label class="toggle">
        <span>Notify me when this page is not in view</span>
        <input
          type="checkbox"
          role="switch"
          checked={notifications}
          onChange={(event) => {
            // It is on only once the browser has allowed it.
            const isOn = event.currentTarget.checked;
            event.currentTarget.checked = notifications;
            void turn(isOn);
          }}
        />
      </label>
      {isRefused && (
        <p class="problem" role="alert">
          {canNotify() ? "Your browser does not allow this page to notify you. You can change that in its settings for this site." : "Notifications need a page that is served over HTTPS."}
        </p>
      )}
    </section>
  );
}

function Access() {
  const page = usePage();
  const [token, setToken] = useState("");
  return (
    <details class="group">
      <summary>Access token</summary>
      <form
        class="field-line"
        onSubmit={(event) => {
          event.preventDefault();
          if (token.trim() !== "") page.connect(token.trim());
          setToken("");
        }}
      >
        <input
          class="input"
          type="password"
          aria-label="Access token"
          autocomplete="off"
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        <button type="submit" class="button">Use</button>
      </form>
      <p class="quiet">Only needed if the server requires one. Kept until you close this tab.</p>
    </details>
  );
}

type Flag = { [Key in keyof Settings]: Settings[Key] extends boolean ? Key : never }[keyof Settings];

function Toggle({ setting, label }: { setting: Flag; label: string }) {
  const page = usePage();
  return (
    <label class="toggle">
      <span>{label}</span>
      <input
        type="checkbox"
        role="switch"
        checked={page.settings.value[setting]}
        onChange={(event) => page.change({ [setting]: event.currentTarget.checked })}
      />
    </label>
  );
}

interface RangeProps {
  setting: "speed" | "volume";
  label: string;
  least: number;
  most: number;
  step: number;
}

function Range({ setting, label, least, most, step }: RangeProps) {
  const page = usePage();
  const value = page.settings.value[setting];
  return (
    <label class="field">
      <span class="field-head">
        <span>{label}</span>
        {/* Not an <output>: the label would then name it instead of the slider. */}
        <span class="field-value" aria-hidden="true">{value}%</span>
      </span>
      <input
        type="range"
        min={least}
        max={most}
        step={step}
        value={value}
        aria-valuetext={`${value}%`}
        onInput={(event) => page.change({ [setting]: Number(event.currentTarget.value) })}
      />
    </label>
  );
}
