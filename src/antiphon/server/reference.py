"""`make reference`: writes every file that describes an interface and is made from the code.

A test fails if one of them is out of date.
"""

from pathlib import Path
from typing import Any, Final

import msgspec

from antiphon.models import reference as models
from antiphon.protocol import typescript
from antiphon.protocol.reference import markdown
from antiphon.protocol.schema import json_schema
from antiphon.server import openapi

SCHEMA: Final = "docs/reference/protocol.schema.json"
PAGE: Final = "docs/reference/protocol.md"
MODELS: Final = "docs/reference/models.md"
OPENAPI: Final = "docs/reference/openapi.json"
TYPES: Final = "web/src/client/wire.ts"


def documents() -> dict[str, str]:
    """Returns the text of each file, by its path from the root of the project."""
    schema = json_schema()
    return {
        SCHEMA: _format(schema),
        PAGE: markdown(schema),
        MODELS: models.markdown(),
        OPENAPI: _format(openapi.document()),
        TYPES: typescript.source(),
    }


def write(root: Path) -> None:
    for name, text in documents().items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def find_stale(root: Path) -> list[str]:
    """Lists the files that are missing, or differ from what the code says."""
    return [
        name
        for name, text in documents().items()
        if not (root / name).is_file() or (root / name).read_text(encoding="utf-8") != text
    ]


def _format(document: dict[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


if __name__ == "__main__":
    write(Path.cwd())
