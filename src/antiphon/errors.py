"""The one tree of errors that people are meant to read: a code for programs, a sentence for people."""

from typing import ClassVar


class AntiphonError(Exception):
    """Its text is one sentence that says what was wrong, where, and what to do. The CLI prints it as it is."""

    code: ClassVar[str] = "error"
