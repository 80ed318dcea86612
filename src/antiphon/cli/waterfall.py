"""Where the time of a spoken turn went, drawn for a terminal."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from antiphon.client.speaking import Exchange
from antiphon.protocol.server_messages import TurnMetrics

WIDTH: Final = 32
"""Of the longest bar, in characters."""


@dataclass(frozen=True, slots=True)
class Stage:
    name: str
    ms: float
    seen_s: float | None
    """When the client saw the end of it, counted from the last sound of the speech."""


def draw(exchange: Exchange) -> Iterator[str]:
    """Nothing for a turn that was not measured."""
    metrics = exchange.metrics
    if metrics is None or metrics.total_ms is None:
        return
    at_ms = 0.0
    for stage in split(metrics, exchange):
        left, right = (round(WIDTH * ms / max(1.0, metrics.total_ms)) for ms in (at_ms, at_ms + stage.ms))
        bar = " " * left + ("█" * (right - left) or "▏")
        seen = "" if stage.seen_s is None else f"here after {stage.seen_s * 1000:.0f} ms"
        yield f"  {stage.name:<12}{stage.ms:>6.0f} ms  {bar:<{WIDTH + 1}} {seen}".rstrip()
        at_ms += stage.ms
    if metrics.stt_ms is not None:
        yield f"  Recognition took {metrics.stt_ms:.0f} ms, as far as possible during the silence."
    here = "" if exchange.first_audio_s is None else f", {exchange.first_audio_s * 1000:.0f} ms seen from here"
    yield f"  you stopped → it spoke: {metrics.total_ms:.0f} ms by the server{here}"


def split(metrics: TurnMetrics, exchange: Exchange) -> list[Stage]:
    """The stages, one after the other, which make up the total. Of recognition, that is what had to be waited for."""
    silence_ms, word_ms, audio_ms = (
        each or 0.0 for each in (metrics.end_of_turn_ms, metrics.first_token_ms, metrics.first_audio_ms)
    )
    waited_ms = max(0.0, (metrics.total_ms or 0.0) - silence_ms - word_ms - audio_ms)
    return [
        Stage("silence", silence_ms, None),
        Stage("recognition", waited_ms, exchange.transcript_s),
        Stage("first word", word_ms, exchange.first_word_s),
        Stage("first audio", audio_ms, exchange.first_audio_s),
    ]
