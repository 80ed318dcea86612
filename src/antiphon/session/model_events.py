"""What a session does about the events of its models. What concerns the turn is left to the machine."""

from typing import TYPE_CHECKING

from antiphon.continuity.energy import EnergyChange
from antiphon.continuity.events import ConnectFailed, Delayed, NoticeCode, Noticed, Opened
from antiphon.continuity.model import FromModel
from antiphon.models import live
from antiphon.models.base import ModelError
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.session.outbox import Outbox
from antiphon.telemetry.log import get_logger
from antiphon.tools.spec import Mode

if TYPE_CHECKING:
    from antiphon.session.runner import Runner

log = get_logger(__name__)

GOOD_NEWS = (NoticeCode.RECONNECTED, NoticeCode.NEW_UPSTREAM)


async def take(runner: "Runner", item: FromModel) -> None:
    connection, event, models = item.connection, item.event, runner.models
    is_successor = connection is models.successor
    if not is_successor and connection is not models.connection:
        return
    match event:
        case Opened(model=name):
            if runner.state.mode is Mode.VOICE and not is_successor:
                runner.voice.note_model(name)
                runner.calls.note_level(connection.level)
            await runner.voice.start_if_ready()
            runner.open_microphone()
        case ConnectFailed(error=error):
            await _fail(runner, error, is_successor=is_successor)
        case live.Closed():
            is_limited = event.kind is live.CloseKind.QUOTA
            error = ModelError(event.reason, retryable=event.retryable, rate_limited=is_limited)
            await _fail(runner, error, is_successor=is_successor)
        case EnergyChange():
            tell_energy(runner.outbox, runner.tools.id, event)
        case Noticed(code=code, text=text):
            kind = s.NoticeKind.SUCCESS if code in GOOD_NEWS else s.NoticeKind.WARNING
            runner.outbox.send(s.Notice(kind, text, code))
        case Delayed(turn=turn):
            runner.filler.start(turn)
        case live.TurnStarted() if await runner.is_blocked():
            # By another session of the same user: the call does not outlast that.
            await runner.voice.end("blocked")
        case live.InputTranscript(is_final=False) if not runner.preferences.captions:
            pass
        case live.Held(turn=turn, is_certain=True) if not runner.outbox.holds:
            await runner.step(live.Interrupted(turn))
        case live.Held() if not runner.outbox.holds:
            pass
        case live.Usage():
            runner.stopwatch.note_usage(event)
            runner.observe(event)
            runner.calls.recording.follow(event)
        case live.SpeechStarted():
            runner.observe(event)
            runner.calls.recording.follow(event)
        case live.GenerationComplete(turn=turn, is_local=True):
            runner.stopwatch.note_local(turn)
            await runner.step(event)
        case live.ResumptionUpdate() | live.GoAway():
            pass
        case _:
            await runner.step(event)


def tell_energy(outbox: Outbox, session_id: str, change: EnergyChange) -> None:
    # "level" would be that of the log line.
    log.info(
        "energy_changed",
        session=session_id,
        mode=change.mode,
        energy=change.level,
        previous=change.previous,
        reason=change.reason,
        model=change.model,
    )
    outbox.send(
        s.Energy(
            mode=c.Mode(change.mode),
            level=change.level,
            max=change.max,
            previous=change.previous,
            reason=s.EnergyReason(change.reason),
            model=change.model,
            resumable=change.resumable,
            requires_fallback=change.requires_fallback,
            again_in_s=change.again_in_s,
        )
    )


async def _fail(runner: "Runner", error: ModelError, *, is_successor: bool) -> None:
    """There is no model: none could be connected, or none is left."""
    turn = runner.state.turn
    if not is_successor:
        runner.models.close()
        if turn is not None:
            await runner.step(live.TurnFailed.because_of(error, turn.id))
    if is_successor or runner.state.mode is Mode.VOICE:
        await runner.voice.fail(error)
