"""The result of a check of `antiphon doctor`, and a helper for HTTP requests."""

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

PATIENCE_S: Final = 1.0
"""How long a server on this machine may take to respond."""
MAX_ANSWER_BYTES: Final = 1_048_576
"""How much of a response is read: enough for a list of some hundred tools."""


@dataclass(frozen=True, slots=True)
class Finding:
    ok: bool
    text: str
    """What was found; for a problem, also what to do."""


Findings = Iterator[Finding]


def ask(url: str, tls: ssl.SSLContext | None = None) -> bytes | None:
    """Returns the response, even an error; None if there is none. Ignores proxies, which could not reach it."""
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import HTTPSHandler, ProxyHandler, build_opener

    try:
        with build_opener(ProxyHandler({}), HTTPSHandler(context=tls)).open(url, timeout=PATIENCE_S) as answer:
            return bytes(answer.read(MAX_ANSWER_BYTES))
    except HTTPError as error:
        with error:
            return bytes(error.read(MAX_ANSWER_BYTES))
    except (HTTPException, OSError, ValueError):
        return None
