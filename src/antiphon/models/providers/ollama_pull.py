"""Pulls a model into an Ollama server, which downloads it and keeps it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from typing import Any, Final

import msgspec
from msgspec import Struct

from antiphon.models.base import FailureKind, ModelError
from antiphon.models.bounded import LimitExceeded
from antiphon.models.providers.events import LineDecoder
from antiphon.models.providers.failures import FAILURES, StreamedError
from antiphon.models.providers.ollama import OllamaServer, explain_ollama
from antiphon.models.providers.references import ModelReference
from antiphon.models.providers.streams import read_stream
from antiphon.security.quotes import add_quote, quote
from antiphon.weights.puller import Progress

LINE_TIMEOUT_S: Final = 600.0
"""The longest silence of the server: it says nothing while it verifies a large file."""
MAX_STEPS: Final = 500
"""The most steps of one pull. A model has about ten files."""
MAX_STEP_CHARS: Final = 80
SUCCESS: Final = "success"


class _Line(Struct, frozen=True):
    status: str = ""
    total: int = 0
    completed: int = 0
    error: Any = None


_decoder: Final = msgspec.json.Decoder(_Line)


async def pull_model(
    reference: ModelReference, env: Mapping[str, str], on_progress: Callable[[Progress], None] = lambda _: None
) -> None:
    """Pulls a model, and reports each step. Raises `ModelError`.

    Ollama keeps what it has downloaded when a pull is interrupted, and continues there the next time.
    """
    server = OllamaServer(reference.endpoint(env), LINE_TIMEOUT_S)
    decoder, steps, is_pulled = LineDecoder(), set[str](), False

    def decode(piece: bytes) -> Iterator[_Line]:
        return map(_decode, decoder.feed(piece))

    try:
        async with (
            server.post("/api/pull", {"model": reference.model, "stream": True}) as response,
            aclosing(read_stream(response, decode, lambda line: line.status == SUCCESS)) as lines,
        ):
            async for line in lines:
                is_pulled = line.status == SUCCESS
                step = _printable(line.status)
                steps.add(step)
                if len(steps) > MAX_STEPS:
                    raise LimitExceeded(f"reported more than {MAX_STEPS} steps")
                if not is_pulled:
                    on_progress(Progress(step, line.completed, line.total))
    except StreamedError as error:
        raise _explain_error(reference, error.body) from error
    except FAILURES as error:
        raise explain_ollama(error, reference, server.endpoint) from error
    finally:
        await server.aclose()
    if not is_pulled:
        message = f"Ollama stopped pulling {reference.model} before its end. Run the command again to continue."
        raise ModelError(message, kind=FailureKind.CUT_OFF)


def _decode(data: bytes) -> _Line:
    line = _decoder.decode(data)
    if line.error:
        raise StreamedError(line.error)
    return line


def _explain_error(reference: ModelReference, body: object) -> ModelError:
    said = quote(body)
    if "file does not exist" in said or "not found" in said:
        message = f"there is no model {reference.model} to pull. See https://ollama.com/library for their names."
        return ModelError(message, retryable=False)
    message = add_quote(f"Ollama could not pull {reference.model}", said)
    return ModelError(message, kind=FailureKind.SERVER_ERROR)


def _printable(status: str) -> str:
    """Returns the description of a step, safe for a terminal."""
    return "".join(char for char in status if char.isprintable())[:MAX_STEP_CHARS]
