"""The packages that only some engines need. They are no part of a plain installation."""

from collections.abc import Iterator
from contextlib import contextmanager

from antiphon.speech.base import SpeechError


@contextmanager
def needs_extra(extra: str, what: object) -> Iterator[None]:
    """Around the import of an engine's module: a package that is missing becomes a `SpeechError` that says so.

    `what` needs it: the engine, as the settings name it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "antiphon"):
            raise
        message = f"{what} needs the package {package}, which is not installed. Run: pip install 'antiphon[{extra}]'"
        raise SpeechError(message) from error
