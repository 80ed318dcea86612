import { useState } from "preact/hooks";
import { Icon } from "./Icon";

/**
 * A button for what cannot be undone: the first click asks for confirmation in place. With a target it is an icon
 * button.
 */
export function ConfirmedButton({ label, target, act }: { label: string; target?: string; act: () => void }) {
  const [isAsked, setAsked] = useState(false);
  if (isAsked) {
    return (
      <button type="button" class="button danger" onBlur={() => setAsked(false)} onClick={act}>
        {label}?{target !== undefined && <span class="visually-hidden"> “{target}”</span>}
      </button>
    );
  }
  const name = `${label} “${target}”`;
  return target !== undefined ? (
    <button type="button" class="icon-button" aria-label={name} title={name} onClick={() => setAsked(true)}>
      <Icon name="bin" />
    </button>
  ) : (
    <button type="button" class="button wide" onClick={() => setAsked(true)}>{label}</button>
  );
}
