"""Writes a new tool's directory for `antiphon tools new`. It builds as it is, and its test passes."""

import re
from pathlib import Path
from typing import Final

from antiphon.authoring.lint.contract import ID_PATTERN
from antiphon.errors import AntiphonError
from antiphon.tools.source import tool_id_of

SCHEMA: Final = """\
{
  "toolId": "TOOL_ID",
  "version": "1.0.0",
  "description": "Echoes a text back. Say here what the tool does, in one sentence for the model.",
  "category": "utility",
  "sideEffects": "none",
  "idempotent": true,
  "requiresConfirmation": false,
  "allowedModes": ["text", "voice"],
  "latencyBudgetMs": 200,
  "parameters": {
    "type": "object",
    "additionalProperties": false,
    "required": ["text"],
    "properties": {
      "text": {
        "type": "string",
        "minLength": 1,
        "maxLength": 200,
        "description": "What to echo."
      }
    }
  },
  "outputs": {
    "type": "object",
    "required": ["text"],
    "properties": {
      "text": {"type": "string"}
    }
  }
}
"""

SUMMARY: Final = """\
Echoes a text back.
Use it when the user asks for WORDS.
"""

DOCUMENT: Final = """\
# TOOL_ID

## Summary
Echoes a text back, unchanged.

## Preconditions
None.

## Postconditions
The result's `text` is the text that was given.

## Invariants
Nothing is stored, and nothing leaves the machine.

## Failure Modes
- VALIDATION: the text is empty, or longer than 200 characters.

## Examples
The user says "WORDS with good morning".
```args
{"text": "good morning"}
```

## Common Mistakes
- Calling it to answer a question: it only repeats.
"""

HANDLER: Final = '''\
"""Echoes a text back."""

from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok


async def execute(args: Args, context: Context) -> ToolResult:
    text = args["text"]
    return ok({"text": text}, spoken=f"You said {text}.")
'''

SENTENCES: Final = """\
# How people ask for it when no language model is connected. Delete this file if it is not needed.
data:
  - sentences:
      - "(use|run) WORDS with {text}"
# The words for {text} when the sentence is suggested to people.
slot_examples: {text: good morning}
# Whole requests in other words, a dozen or more: they are compared by meaning with what no sentence above matches.
# examples:
#   - could you WORDS something for me
# How arguments are found in such requests, and the question for one that is missing.
# arguments:
#   text: {reader: text, ask: "With which words?"}
"""

TEST: Final = """\
import asyncio
from pathlib import Path

from antiphon.authoring.testing import load_module, make_context

handler = load_module(Path(__file__).parents[1])


def test_it_echoes_the_text() -> None:
    result = asyncio.run(handler.execute({"text": "good morning"}, make_context("TOOL_ID")))
    assert result.ok
    assert result.data == {"text": "good morning"}
    assert result.spoken == "You said good morning."
"""


class ScaffoldError(AntiphonError):
    """The directory cannot be created."""

    code = "tools_new"


def create(root: Path, name: str) -> Path:
    """Writes the directory of a new tool under `root` and returns it. Raises ScaffoldError."""
    tool_id = tool_id_of(name)
    if not re.fullmatch(ID_PATTERN, tool_id):
        raise ScaffoldError(
            f'"{name}" cannot be the name of a tool. Use lower-case letters, digits and underscores, at most 64, '
            "the first one a letter."
        )
    for taken in (root / tool_id, root / tool_id.replace("_", "-"), root / name):
        if taken.exists():
            raise ScaffoldError(f"{taken} exists already. Choose another name, or delete it first.")
    files = {
        "schema.json": SCHEMA,
        "doc_summary.md": SUMMARY,
        "doc.md": DOCUMENT,
        "handler.py": HANDLER,
        "sentences.yaml": SENTENCES,
        f"tests/test_{tool_id}.py": TEST,
    }
    try:
        for file, content in files.items():
            path = root / tool_id / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content.replace("TOOL_ID", tool_id).replace("WORDS", tool_id.replace("_", " ")))
    except OSError as error:
        raise ScaffoldError(f"{error.filename} cannot be written: {error.strerror}.") from error
    return root / tool_id
