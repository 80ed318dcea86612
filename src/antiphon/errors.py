"""The base class of all errors that people read: a code for programs, and a sentence for people."""

from typing import ClassVar


class AntiphonError(Exception):
    """The text is one sentence that says what is wrong, where, and what to do. The CLI prints it unchanged."""

    code: ClassVar[str] = "error"
