from typing import Any

import msgspec
import pytest

from antiphon.authoring.testing import make_context
from antiphon.toolkit.change_voice.handler import execute
from antiphon.tools.context import Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import Intent, IntentType


def speaking(speed: int = 100, volume: int = 80) -> Context:
    context = make_context()
    session = msgspec.structs.replace(context.session, voice_speed=speed, volume=volume)
    return msgspec.structs.replace(context, session=session)


@pytest.mark.parametrize(
    ("args", "now", "said"),
    [
        ({"speed": "slower"}, (80, 80), "Okay, I'll speak slower."),
        ({"speed": "faster"}, (120, 80), "Okay, I'll speak faster."),
        ({"speed": "normal"}, (100, 80), "Okay, back to my normal speed."),
        ({"speed": 150}, (150, 80), "Okay, 150 percent of my normal speed."),
        ({"volume": "louder"}, (100, 100), "Okay, louder: the volume is at 100 percent."),
        ({"volume": 50}, (100, 50), "Okay, the volume is at 50 percent."),
    ],
)
async def test_the_session_is_asked_to_change(args: dict[str, Any], now: tuple[int, int], said: str) -> None:
    result = await execute(args, speaking())
    assert result.spoken == said
    assert result.intents == (Intent(IntentType.CHANGE_VOICE, voice_speed=now[0], volume=now[1]),)
    assert result.data == {"voice_speed": now[0], "volume": now[1]}


@pytest.mark.parametrize(
    ("args", "speed", "volume", "said"),
    [
        ({"speed": "slower"}, 50, 80, "I can't speak any slower."),
        ({"speed": "faster"}, 200, 80, "I can't speak any faster."),
        ({"volume": "louder"}, 100, 100, "I can't get any louder. Your device may have a volume of its own."),
    ],
)
async def test_at_a_limit_it_says_so(args: dict[str, Any], speed: int, volume: int, said: str) -> None:
    assert (await execute(args, speaking(speed, volume))).spoken == said


async def test_without_a_wish_it_asks() -> None:
    error = (await execute({}, speaking())).error
    assert error is not None
    assert (error.type, error.message) == (ErrorType.VALIDATION, "Louder or quieter, faster or slower?")
