"""Quotes the error message of another server in our own. Pure."""

from typing import Final

from antiphon.security.surrogates import repair

MAX_QUOTE_CHARS: Final = 300


def quote(body: object, key: str | None = None) -> str:
    """Returns the error text of a response, on one line, shortened, and without the key; empty for HTML."""
    said = " ".join(repair(_words(body)).split())
    if said.startswith("<"):
        return ""
    if key:
        said = said.replace(key, "…")
    return said if len(said) <= MAX_QUOTE_CHARS else f"{said[:MAX_QUOTE_CHARS]}…"


def add_quote(what: str, said: str) -> str:
    """Makes a sentence about what happened, with the other server's text if there is any."""
    return f"{what}: {said}" if said else f"{what}."


def _words(body: object) -> str:
    """Finds the text of an error: a string (Ollama), an object, an object in a list (Gemini), or FastAPI's `detail`."""
    match body:
        case str(text) | {"message": str(text)} | {"detail": str(text)}:
            return text
        case [inner, *_] | {"error": inner}:
            return _words(inner)
        case _:
            return ""
