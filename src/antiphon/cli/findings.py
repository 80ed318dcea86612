"""What a check of the doctor finds, and how it asks around."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

PATIENCE_S: Final = 1.0
"""How long a server on this machine may take to answer."""


@dataclass(frozen=True, slots=True)
class Finding:
    ok: bool
    text: str
    """What was found; of a problem, also what to do."""


Findings = Iterator[Finding]


def ask(url: str) -> bytes | None:
    """What is answered there, be it an error; None if nobody does. Past any proxy, which could not reach it."""
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import ProxyHandler, build_opener

    try:
        with build_opener(ProxyHandler({})).open(url, timeout=PATIENCE_S) as answer:
            return bytes(answer.read(65_536))
    except HTTPError as error:
        with error:
            return bytes(error.read(65_536))
    except (HTTPException, OSError, ValueError):
        return None
