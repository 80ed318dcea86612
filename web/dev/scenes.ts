/** What the scripted server sends in each scene. */

const CODE = `import re
from datetime import date

DATE = re.compile(r"(\\d{4})-(\\d{2})-(\\d{2})")


def find_dates(text: str) -> list[date]:
    """All dates in the text, in their order."""
    return [date(*map(int, match.groups())) for match in DATE.finditer(text)]
`;

const turns = [
  { type: "state", state: "processing" },
  { type: "transcript", text: "What's the weather in Lisbon at the weekend, and do I need an umbrella?", is_final: true },
  { type: "response_chunk", text: "Let me look at the forecast.", is_first: true },
  { type: "tool_call", id: "t1", name: "get_forecast", args: { location: "Lisbon", days: 3 } },
  {
    type: "tool_result",
    id: "t1",
    name: "get_forecast",
    ok: true,
    duration_ms: 412,
    result: { days: [{ day: "Saturday", high: 21, rain: 0.1 }], sources: [{ title: "Instituto Português do Mar", url: "https://www.ipma.pt/" }] },
  },
  { type: "tool_call", id: "t2", name: "web_search", args: { query: "Lisbon weekend events" } },
  { type: "tool_result", id: "t2", name: "web_search", ok: false, duration_ms: 5003, result: { error: { code: "TIMEOUT", message: "The search took too long." } } },
  {
    type: "response_chunk",
    text: " **Saturday** is dry with up to 21 °C; on *Sunday* there may be showers after four.\n\n| day | high | rain |\n|---|---|---|\n| Saturday | 21 °C | 10 % |\n| Sunday | 18 °C | 60 % |\n\n- Take an umbrella on Sunday.\n- See [the forecast](https://www.ipma.pt/) for hours.",
    is_first: false,
  },
  {
    type: "response",
    text: "Let me look at the forecast. **Saturday** is dry with up to 21 °C; on *Sunday* there may be showers after four.\n\n| day | high | rain |\n|---|---|---|\n| Saturday | 21 °C | 10 % |\n| Sunday | 18 °C | 60 % |\n\n- Take an umbrella on Sunday.\n- See [the forecast](https://www.ipma.pt/) for hours.",
  },
  { type: "turn_metrics", turn: 1, end_of_turn_ms: 310, stt_ms: 140, first_token_ms: 95, first_audio_ms: 120, total_ms: 525 },
  { type: "state", state: "idle" },
  { type: "state", state: "processing" },
  { type: "transcript", text: "Write me a regular expression for dates", is_final: true },
  { type: "response_chunk", text: `Here is one, with a function around it:\n\n\`\`\`python\n${CODE}\`\`\`\n\nIt takes dates such as \`2031-05-04\`.`, is_first: true },
  { type: "response", text: `Here is one, with a function around it:\n\n\`\`\`python\n${CODE}\`\`\`\n\nIt takes dates such as \`2031-05-04\`.` },
  { type: "turn_metrics", turn: 2, end_of_turn_ms: 290, stt_ms: 150, first_token_ms: 80, first_audio_ms: 110, total_ms: 480 },
  { type: "state", state: "speaking" },
  { type: "state", state: "interrupted" },
  { type: "state", state: "processing" },
  { type: "transcript", text: "Stop. What is on my list today?", is_final: true },
  { type: "tool_call", id: "t3", name: "list_tasks", args: { day: "today" } },
] as const;

export const busyScene: readonly object[] = [
  ...turns,
  { type: "notice", kind: "warning", text: "Rate limited: switching to the local model.", code: "rate_limited", duration_ms: 60000 },
  { type: "energy", mode: "voice", level: 1, max: 3, previous: 3, reason: "rate-limit-exceeded", model: "cascade", resumable: false, requires_fallback: true },
];

export const SCENES: Readonly<Record<string, readonly object[]>> = {
  welcome: [],
  busy: busyScene,
  confirm: [
    ...turns,
    {
      type: "confirmation_request",
      confirmation_token: "tok",
      tool: "send_email",
      args: { to: "ana@example.org", subject: "Weekend", body: "Shall we meet on Saturday?\nI bring the umbrella." },
      preview: "Send an e-mail to ana@example.org with the subject “Weekend”.",
      expires_at: Date.now() + 58_000,
    },
  ],
  code: [...turns, { type: "flyout", flyout_type: "code", content: CODE, language: "python", title: "find_dates.py" }],
  terminal: [
    ...turns,
    { type: "flyout", flyout_type: "code", content: CODE, language: "python", title: "find_dates.py" },
    { type: "flyout", flyout_type: "terminal", content: "$ pytest -q", language: null, title: null },
    { type: "flyout", flyout_type: "terminal", content: "....                                   [100%]\n4 passed in 0.12s", language: null, title: null },
  ],
  browser: [...turns, { type: "flyout", flyout_type: "browser", content: "https://example.org/", language: null, title: "Example" }],
  lost: turns,
  due: [
    ...turns,
    {
      type: "response",
      text: "The guest network's password is **tulip-meadow**.",
      citations: [{ id: "r1", title: "Guest wifi", url: null }, { id: "w1", title: "The manual", url: "https://example.org/" }],
    },
    { type: "image", url: "/images/gone.png", caption: "A picture that is gone" },
    { type: "reminder", id: "r1", message: "Tea is ready", due: Date.now(), kind: "timer", missed: false },
    { type: "reminder", id: "r2", message: "Call Ana", due: Date.now() - 86_400_000, kind: "reminder", missed: true },
  ],
  blocked: [
    ...turns,
    { type: "reminder", id: "r1", message: "Pack the umbrella", due: Date.now() },
    { type: "timeout", until: Date.now() + 95_000, duration_seconds: 95, message: "Let us take a break. Goodbye for now." },
    { type: "error", message: "The model cannot be reached.", code: "model_failed", retryable: true },
  ],
};
