"""How messages show values: without passwords."""

import json
import re
from typing import Any, Final

MAX_QUOTE_CHARS: Final = 200
"""How much of an invalid value an error shows."""


def quote(value: Any) -> str:
    """Formats a value as JSON, without the password that the URL of a database may contain."""
    quoted = re.sub(r"://.*@", "://…@", json.dumps(value, default=str, ensure_ascii=False))
    quoted = re.sub(r"(?<=[?&]password=)[^&\"]*", "…", quoted)
    return quoted if len(quoted) <= MAX_QUOTE_CHARS else f"{quoted[:MAX_QUOTE_CHARS]}…"


def hide_password(url: str) -> str:
    """Returns the address of a database without the password and without the parameters, which may have one, too."""
    return re.sub(r"^(\w+)://([^:@/]*):[^@/]*@", r"\1://\2@", url.partition("?")[0])
