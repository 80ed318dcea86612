"""Changes how fast and how loud the assistant speaks."""

from typing import Final

from antiphon.tools.context import Args, Context
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import VOICE_SPEEDS, VOLUMES, ToolResult, fail, ok

STEP: Final = 20
"""Percent. Fewer are hardly heard."""
NORMAL_SPEED: Final = 100
NORMAL_VOLUME: Final = 80


async def execute(args: Args, context: Context) -> ToolResult:
    was_speed, was_volume = context.session.voice_speed, context.session.volume
    speed, volume = args.get("speed"), args.get("volume")
    if speed is None and volume is None:
        return fail(ErrorType.VALIDATION, "Louder or quieter, faster or slower?", suggestion="Pass speed or volume.")
    new_speed = was_speed if speed is None else _move(speed, was_speed, VOICE_SPEEDS, NORMAL_SPEED)
    new_volume = was_volume if volume is None else _move(volume, was_volume, VOLUMES, NORMAL_VOLUME)
    said = [
        *([] if speed is None else [_tell_speed(speed, was_speed, new_speed)]),
        *([] if volume is None else [_tell_volume(volume, was_volume, new_volume)]),
    ]
    return ok(
        {"voice_speed": new_speed, "volume": new_volume},
        spoken=" ".join(said),
        intents=[context.voice.change(speed=new_speed, volume=new_volume)],
    )


def _move(wanted: str | int, now: int, allowed: range, normal: int) -> int:
    match wanted:
        case "slower" | "quieter":
            moved = now - STEP
        case "faster" | "louder":
            moved = now + STEP
        case int():
            moved = wanted
        case _:
            moved = normal
    return min(max(moved, allowed[0]), allowed[-1])


def _tell_speed(wanted: str | int, was: int, now: int) -> str:
    match wanted:
        case "normal":
            return "Okay, back to my normal speed."
        case str() if was == now:
            return f"I can't speak any {wanted}."
        case str():
            return f"Okay, I'll speak {wanted}."
    return f"Okay, {now} percent of my normal speed."


def _tell_volume(wanted: str | int, was: int, now: int) -> str:
    if isinstance(wanted, str) and wanted != "normal":
        if was == now:
            return f"I can't get any {wanted}. Your device may have a volume of its own."
        return f"Okay, {wanted}: the volume is at {now} percent."
    return f"Okay, the volume is at {now} percent."
