"""Charges recorded and synthesised speech to its caller's quota, piece by piece."""

import asyncio
import math
from typing import Final

from antiphon.clock import Clock
from antiphon.gateway.api_errors import ApiError, too_fast
from antiphon.security.quota import Account, Kind, Quota
from antiphon.speech.base import SpeechBusy, SpeechError
from antiphon.telemetry.log import get_logger

BUSY_RETRY_S: Final = 1.0
NO_VOICE: Final = "This server {cannot}. Its settings have no engine for that, or the engine did not start."

log = get_logger(__name__)


class AudioCharge:
    """The audio of one request. A caller that has used up its quota is refused; one that uses it up halfway waits."""

    def __init__(self, quota: Quota, account: Account, clock: Clock) -> None:
        self._quota = quota
        self._account = account
        self._clock = clock
        self._has_begun = False

    async def take(self, seconds: float) -> None:
        """Returns when this much audio may be processed. Raises `ApiError` before the first piece."""
        while (wait_s := self._quota.take(Kind.AUDIO_S, self._account, seconds, self._clock.monotonic())) > 0:
            if not self._has_begun or math.isinf(wait_s):
                raise too_fast("Too much audio was sent or asked for in a short time. Try again later.", wait_s)
            await asyncio.sleep(wait_s)
        self._has_begun = True


def no_engine(cannot: str) -> ApiError:
    """Makes the error for a server without the engine, such as "cannot transcribe speech"."""
    return ApiError(404, NO_VOICE.format(cannot=cannot), code="no_voice")


def engine_failed(error: SpeechError) -> ApiError:
    if isinstance(error, SpeechBusy):
        return ApiError(503, str(error), code="busy", retry_after_s=BUSY_RETRY_S)
    log.warning("speech_failed", error=str(error))
    return ApiError(502, str(error), code="speech_failed")
