"""Formats exceptions for the log: their types and where they were raised, but not what people said.

The text of an exception often repeats the value that it is about, such as the words of a user. Only our own errors are
written for operators, so only their texts are shown.
"""

import traceback
from collections.abc import Iterator
from typing import Any, Final

from structlog.typing import ExcInfo

from antiphon.errors import AntiphonError

HIDDEN: Final = "(text hidden: it may contain what a user said)"
MAX_EXCEPTIONS: Final = 20
MAX_FRAMES: Final = 50
"""The innermost frames of each exception that are shown."""


class ExceptionFormat:
    def __init__(self, *, with_texts: bool) -> None:
        self._with_texts = with_texts

    def as_data(self, exc_info: ExcInfo) -> list[dict[str, Any]]:
        """Returns the exception, followed by its causes."""
        return [
            {
                "exc_type": type(error).__name__,
                "exc_value": self._text_of(error),
                "frames": [
                    {"filename": frame.filename, "lineno": frame.lineno, "name": frame.name}
                    for frame in _frames_of(error)
                ],
            }
            for error in _related(exc_info)
        ]

    def as_text(self, exc_info: ExcInfo) -> str:
        """Formats it as Python does: the exception itself comes last."""
        blocks = []
        for error in reversed(_related(exc_info)):
            frames = "".join(traceback.format_list(_frames_of(error)))
            blocks.append(f"{frames}{type(error).__name__}: {self._text_of(error)}")
        return "\n\n".join(blocks)

    def _text_of(self, error: BaseException) -> str:
        return str(error) if self._with_texts or isinstance(error, AntiphonError) else HIDDEN


def _frames_of(error: BaseException) -> traceback.StackSummary:
    # A negative limit keeps the innermost frames.
    return traceback.extract_tb(error.__traceback__, limit=-MAX_FRAMES)


def _related(exc_info: ExcInfo) -> list[BaseException]:
    found: dict[int, BaseException] = {}
    for error in _walk(exc_info[1]):
        if id(error) in found or len(found) == MAX_EXCEPTIONS:
            break
        found[id(error)] = error
    return list(found.values())


def _walk(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for each in error.exceptions:
                yield from _walk(each)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
