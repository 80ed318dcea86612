"""The drawing of a turn's time."""

import pytest

from antiphon.cli.display import WIDTH, draw, split
from antiphon.client.speaking import Exchange
from antiphon.protocol.server_messages import TurnMetrics

METRICS = TurnMetrics(
    turn=1, end_of_turn_ms=320.0, stt_ms=150.0, first_token_ms=10.0, first_audio_ms=200.0, total_ms=560.0
)


def exchange(metrics: TurnMetrics | None) -> Exchange:
    return Exchange(metrics=metrics, transcript_s=0.36, first_word_s=0.38, first_audio_s=0.6)


def test_the_stages_make_up_the_total() -> None:
    stages = split(METRICS, exchange(METRICS))
    assert [stage.name for stage in stages] == ["silence", "recognition", "first word", "first audio"]
    assert [stage.ms for stage in stages] == [320, 30, 10, 200]
    assert sum(stage.ms for stage in stages) == METRICS.total_ms


def test_each_bar_begins_where_the_last_has_ended() -> None:
    bars = [line.split(" ms  ")[1].split(" client:")[0].rstrip() for line in list(draw(exchange(METRICS)))[:4]]
    assert bars[0] == "█" * round(WIDTH * 320 / 560)
    begins = [len(bar) - len(bar.lstrip()) for bar in bars]
    assert begins == [0, *(round(WIDTH * ms / 560) for ms in (320, 350, 360))]
    assert len(bars[-1]) == WIDTH


def test_both_clocks_are_shown() -> None:
    lines = list(draw(exchange(METRICS)))
    assert lines[-1] == "  you stopped → it spoke: 560 ms on the server, 600 ms on the client"
    assert "client: 360 ms" in lines[1]
    assert "Recognition took 150 ms" in lines[-2]


@pytest.mark.parametrize("metrics", [None, TurnMetrics(turn=1)])
def test_a_turn_that_was_not_measured_is_not_drawn(metrics: TurnMetrics | None) -> None:
    assert list(draw(exchange(metrics))) == []


def test_a_turn_without_sound_is_drawn_as_far_as_it_went() -> None:
    metrics = TurnMetrics(turn=1, first_token_ms=0.0, total_ms=0.0)
    lines = list(draw(Exchange(metrics=metrics, first_word_s=0.1)))
    assert lines[-1] == "  you stopped → it spoke: 0 ms on the server"
    assert len(lines) == 5
