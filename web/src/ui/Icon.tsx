const PATHS = {
  history: "M3.5 12a8.5 8.5 0 1 0 2.6-6.1M3.5 3.8v3.7h3.7M12 7.5V12l3 2",
  pulse: "M3 12h4l2.5-7 5 14 2.5-7h4",
  settings: "M4 7.5h8.5M17.5 7.5H20M15 10a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM4 16.5h2.5M11.5 16.5H20M9 19a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Z",
  keys: "M9.2 9a2.9 2.9 0 1 1 4.2 2.6c-.9.5-1.4 1-1.4 2.1M12 17.2v.1M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18Z",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  mic: "M12 14.5a3 3 0 0 0 3-3v-5a3 3 0 1 0-6 0v5a3 3 0 0 0 3 3ZM5.5 11.5a6.5 6.5 0 0 0 13 0M12 18v3",
  micOff: "M9 9.5v2a3 3 0 0 0 4.6 2.5M15 10.5v-4a3 3 0 0 0-5.7-1.3M5.5 11.5a6.5 6.5 0 0 0 10 5.4M18.4 12.5c.1-.3.1-.7.1-1M12 18v3M4 4l16 16",
  end: "M2.8 14.2c-.4-1.3 0-2.3 1-3.1 4.6-3.5 11.8-3.5 16.4 0 1 .8 1.4 1.8 1 3.1l-.5 1.5c-.2.7-.9 1.1-1.6.9l-2.7-.7c-.6-.2-1-.7-1-1.3v-1.7c-2.2-.7-4.6-.7-6.8 0v1.7c0 .6-.4 1.1-1 1.3l-2.7.7c-.7.2-1.4-.2-1.6-.9z",
  close: "M6 6l12 12M18 6 6 18",
  copy: "M9 9h10v11H9zM5 15V4h10",
  check: "M5 12.5l4.5 4.5L19 7.5",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  tool: "M14.5 6.5a4 4 0 0 0-5.3 5l-5 5 3.3 3.3 5-5a4 4 0 0 0 5-5.3l-2.6 2.6-2.7-.3-.3-2.7z",
  down: "M6 9l6 6 6-6",
  bell: "M6 16.5V11a6 6 0 1 1 12 0v5.5l1.5 1.5h-15zM10 20.5h4",
  plus: "M12 5v14M5 12h14",
  bin: "M5 7h14M10 7V4.5h4V7M7 7l.8 12.5h8.4L17 7",
  panel: "M4 5h16v14H4zM14 5v14",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
