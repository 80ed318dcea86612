"""Logs one line per event on stderr: JSON for programs, or text for people.

The log contains no secrets, nothing that people said, and no terminal control characters.
"""

import logging
import math
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, TextIO, cast

import structlog
from structlog.processors import ExceptionRenderer, JSONRenderer, TimeStamper
from structlog.typing import EventDict, ExceptionTransformer, ExcInfo, FilteringBoundLogger, Processor, WrappedLogger

from antiphon.telemetry.exceptions import ExceptionFormat
from antiphon.telemetry.secrets import MASK, scrub

MAX_TEXT_CHARS: Final = 2_000
MAX_DEPTH: Final = 8

_SECRET: Final = re.compile(
    r"(?:^|_)(?:tokens?|secrets?|passwords?|passphrases?|authorization|api_?keys?|handles?|cookies?|credentials?)(?:_|$)"
)
_OUR_SECRETS: Final = re.compile(r"ap[nr]_[A-Za-z0-9_-]{16,}")
_FIRST: Final = ("timestamp", "level", "event", "logger")


def configure(*, json: bool, level: str, stream: TextIO | None = None, exception_texts: bool = False) -> None:
    """Configures the log of the whole process, including libraries. `level` is debug, info, warning, error or critical.

    `exception_texts` shows the texts of all exceptions. It is for developers, whose logs contain only their own words.
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


@contextmanager
def logging_forwarded() -> Iterator[None]:
    """Sends the log to Python's `logging` during the block, for a program that has not configured structlog itself.

    Without it, structlog would print every line to standard output, and secrets would not be masked.
    """
    if structlog.is_configured():
        yield
        return
    exceptions = ExceptionRenderer(_indented(ExceptionFormat(with_texts=False).as_text))
    processors: list[Processor] = [structlog.processors.add_log_level, _make_plain_untimed, exceptions, _to_logging]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        logger_factory=lambda *names: _ToLogging(),
    )
    try:
        yield
    finally:
        if structlog.get_config()["processors"] is processors:
            structlog.reset_defaults()


class _ToLogging:
    """Writes to the logger of `logging` that a line names."""

    def __getattr__(self, method: str) -> Callable[[str, str], None]:
        level = logging.getLevelNamesMapping()[method.upper()]
        return lambda name, text: logging.getLogger(name).log(level, "%s", text)


def _make_plain_untimed(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    return _make_plain(logger, method, {"timestamp": None, **event})


def _to_logging(_: WrappedLogger, __: str, event: EventDict) -> tuple[tuple[str, str], dict[str, Any]]:
    name, text, exception = event.pop("logger"), event.pop("event"), event.pop("exception", None)
    shown = {key: value for key, value in event.items() if key not in ("timestamp", "level")}
    line = _escape(" ".join([str(text), *(f"{key}={value!r}" for key, value in shown.items())]))
    return (str(name), line if exception is None else f"{line}\n{exception}"), {}


def get_logger(name: str) -> FilteringBoundLogger:
    # Lazy, so that a logger made at import follows a later `configure`. structlog reserves the name "logger".
    return cast(FilteringBoundLogger, structlog.get_logger(logger_name=name))


class _Forward(logging.Handler):
    """Forwards the warnings of libraries to our log, including asyncio's about exceptions that were never retrieved."""

    def emit(self, record: logging.LogRecord) -> None:
        # Libraries define levels in between, which structlog does not know.
        level = min(record.levelno // 10 * 10, logging.CRITICAL)
        message = record.getMessage()
        if record.name == "asyncio":
            # The rest is the repr of a task, its exception or the arguments of a callback.
            message = re.split(r"[\n(<]", message, maxsplit=1)[0].strip()
        get_logger(record.name).log(level, message, exc_info=record.exc_info)


def _make_plain(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Converts the event to JSON data with masked secrets, the common fields first."""
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
    """Masks a secret. Numbers are kept, since they count a model's tokens, and so is None."""
    return value if value is None or isinstance(value, int | float) else MASK


@lru_cache(maxsize=1024)
def _is_secret(key: str) -> bool:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "_", key).lower()
    return _SECRET.search(words) is not None


def _escape_names(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Escapes what the console does not quote: the event, the logger and the keys."""
    quoted = {_escape(key): value for key, value in event.items()}
    return quoted | {key: _escape(str(quoted[key])) for key in ("event", "logger")}


def _escape(text: str) -> str:
    return text if text.isprintable() else repr(text)[1:-1]


def _indented(format: Callable[[ExcInfo], str]) -> ExceptionTransformer:
    """Indents exceptions, so that a line break in a text cannot imitate a line of the log."""

    def indent(exc_info: ExcInfo) -> str:
        lines = _scrub(format(exc_info)).split("\n")
        return textwrap.indent("\n".join(map(_escape, lines)).rstrip(), "    ")

    return indent


def _scrubbed(format: Callable[[ExcInfo], Any]) -> ExceptionTransformer:
    return lambda exc_info: _plain(format(exc_info))


def _scrub(text: str) -> str:
    """Masks the secrets of tools, and tokens and handles, which can be recognized by their form."""
    text = scrub(text)
    return _OUR_SECRETS.sub(MASK, text) if "ap" in text else text
