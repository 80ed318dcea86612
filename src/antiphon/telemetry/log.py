"""One line an event on stderr: JSON for programs, or a console for people.

There are no secrets in it, nothing that people said, and nothing that a terminal obeys.
"""

import logging
import math
import os
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, TextIO, cast

import structlog
from structlog.processors import ExceptionRenderer, JSONRenderer, TimeStamper
from structlog.typing import EventDict, ExceptionTransformer, ExcInfo, FilteringBoundLogger, Processor, WrappedLogger

from antiphon.telemetry.exceptions import ExceptionFormat

MASK: Final = "***"
MAX_TEXT_CHARS: Final = 2_000
MAX_DEPTH: Final = 8

_SECRET: Final = re.compile(
    r"(?:^|_)(?:tokens?|secrets?|passwords?|passphrases?|authorization|api_?keys?|handles?|cookies?|credentials?)(?:_|$)"
)
_OUR_SECRETS: Final = re.compile(r"ap[nr]_[A-Za-z0-9_-]{16,}")
_FIRST: Final = ("timestamp", "level", "event", "logger")


def configure(*, json: bool, level: str, stream: TextIO | None = None, exception_texts: bool = False) -> None:
    """Decides how the whole process logs, libraries included; `level` is debug, info, warning, error or critical.

    `exception_texts` are for logs that nobody reads but whoever said what is in them: a developer's.
    """
    stream = sys.stderr if stream is None else stream
    exceptions = ExceptionFormat(with_texts=exception_texts)
    rendering: list[Processor]
    if json:
        rendering = [ExceptionRenderer(_scrubbed(exceptions.as_data)), JSONRenderer()]
    else:
        colors = stream.isatty() and "NO_COLOR" not in os.environ
        console = structlog.dev.ConsoleRenderer(colors=colors, repr_native_str=True, sort_keys=False)
        rendering = [_escape_names, ExceptionRenderer(_indented(exceptions.as_text)), console]
    structlog.configure(
        processors=[structlog.processors.add_log_level, TimeStamper(fmt="iso", utc=True), _make_plain, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(stream),
    )
    root = logging.getLogger()
    root.handlers = [*(each for each in root.handlers if not isinstance(each, _Forward)), _Forward(logging.WARNING)]


def get_logger(name: str) -> FilteringBoundLogger:
    # Lazy, so that a logger made at import obeys a later `configure`. structlog keeps the word "logger" for itself.
    return cast(FilteringBoundLogger, structlog.get_logger(logger_name=name))


class _Forward(logging.Handler):
    """Warnings of libraries, and asyncio's of an exception that nobody awaited, become lines like any other."""

    def emit(self, record: logging.LogRecord) -> None:
        # Libraries invent levels in between, which structlog does not know.
        level = min(record.levelno // 10 * 10, logging.CRITICAL)
        message = record.getMessage()
        if record.name == "asyncio":
            # What follows is how a task, its exception or the arguments of a callback are written.
            message = re.split(r"[\n(<]", message, maxsplit=1)[0].strip()
        get_logger(record.name).log(level, message, exc_info=record.exc_info)


def _make_plain(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """The event as JSON data, secrets masked, with the parts that every line has in front."""
    event["logger"] = event.pop("logger_name", None)
    plain = {key: _plain(event[key]) for key in _FIRST}
    for key, value in event.items():
        if key == "exc_info":
            plain[key] = value
        elif key not in plain:
            plain[key] = _mask(value) if _is_secret(key) else _plain(value)
    return plain


def _plain(value: object, depth: int = 0) -> Any:
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else repr(value)
        case str():
            value = _scrub(value)
            return value if len(value) <= MAX_TEXT_CHARS else f"{value[:MAX_TEXT_CHARS]}…"
        case Mapping() | list() | tuple() if depth >= MAX_DEPTH:
            return "…"
        case Mapping():
            return {
                str(key): _mask(inner) if _is_secret(str(key)) else _plain(inner, depth + 1)
                for key, inner in value.items()
            }
        case list() | tuple():
            return [_plain(inner, depth + 1) for inner in value]
    return _plain(repr(value))


def _mask(value: object) -> object:
    """A number is no secret of ours: it counts the tokens of a model. None tells that there was no secret."""
    return value if value is None or isinstance(value, int | float) else MASK


@lru_cache(maxsize=1024)
def _is_secret(key: str) -> bool:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "_", key).lower()
    return _SECRET.search(words) is not None


def _escape_names(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """The console quotes values, but writes the event, the logger and the keys as they are."""
    quoted = {_escape(key): value for key, value in event.items()}
    return quoted | {key: _escape(str(quoted[key])) for key in ("event", "logger")}


def _escape(text: str) -> str:
    return text if text.isprintable() else repr(text)[1:-1]


def _indented(format: Callable[[ExcInfo], str]) -> ExceptionTransformer:
    """Indented, so that a line break in an exception's text cannot pass for a line of the log."""

    def indent(exc_info: ExcInfo) -> str:
        lines = _scrub(format(exc_info)).split("\n")
        return textwrap.indent("\n".join(map(_escape, lines)).rstrip(), "    ")

    return indent


def _scrubbed(format: Callable[[ExcInfo], Any]) -> ExceptionTransformer:
    return lambda exc_info: _plain(format(exc_info))


def _scrub(text: str) -> str:
    """Tokens and handles can be told by their shape, wherever they stand."""
    return _OUR_SECRETS.sub(MASK, text) if "ap" in text else text
