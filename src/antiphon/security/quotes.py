"""What another's server said went wrong, made fit for a message of ours. Pure."""

from typing import Final

from antiphon.security.surrogates import mend

MAX_QUOTE_CHARS: Final = 300


def quote(body: object, key: str | None = None) -> str:
    """The words in the body of a refusal, on one line, cut, and without the key; none if it is a page for a browser."""
    said = " ".join(mend(_words(body)).split())
    if said.startswith("<"):
        return ""
    if key:
        said = said.replace(key, "…")
    return said if len(said) <= MAX_QUOTE_CHARS else f"{said[:MAX_QUOTE_CHARS]}…"


def tell(what: str, said: str) -> str:
    """A sentence about what happened, with the other's words if there are any."""
    return f"{what}: {said}" if said else f"{what}."


def _words(body: object) -> str:
    """An error is a text (Ollama), an object, an object in a list (Gemini), or what FastAPI calls a detail."""
    match body:
        case str(text) | {"message": str(text)} | {"detail": str(text)}:
            return text
        case [inner, *_] | {"error": inner}:
            return _words(inner)
        case _:
            return ""
