"""Recognises tool calls that a model wrote as text, in the formats that models were trained with or fall into. Pure.

Small models, and servers that do not know a model's format, send calls as text:

- JSON, bare or in a fence: `{"name": …, "arguments": {…}}`, and with other words for the two;
- JSON in tags: `<tool_call>…</tool_call>` (Qwen, Hermes), `<tools>…`, `[TOOL_CALLS] […]` (Mistral), `<|python_tag|>…`
  (Llama);
- `<function=NAME>{…}</function>` (Llama), or with `<parameter=…>` tags (Qwen Coder);
- Python: `NAME(key="value")`, in a list or alone (Llama, LFM).

Only a whole message is a call; with other text before or after it, it stays text, because a model may also quote one.
JSON and Python count only if they name a tool of the prompt. Tags are unmistakable: if they name no known tool, or what
is in them cannot be read, the message still becomes a call, which the gate refuses. It is not spoken, and the refusal
tells the model what was wrong.
"""
