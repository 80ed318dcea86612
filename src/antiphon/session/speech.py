"""A model's speech on its way to the client: at the wire's rate, in whole pieces."""

from typing import TYPE_CHECKING

from antiphon.models.live import OutputAudio
from antiphon.protocol.limits import SPEECH_HZ
from antiphon.session.events import Voiced

if TYPE_CHECKING:
    from antiphon.audio.resample import Resampler


class Speech:
    """Of one model. A resampler holds a moment of sound back, so what a piece says may come out with the next one."""

    def __init__(self, hz: int) -> None:
        self._hz = hz
        self._resampler: Resampler | None = None
        self._text = ""
        """Of pieces that were too short to come out."""

    def take(self, piece: OutputAudio) -> Voiced | None:
        """None while nothing can be heard yet."""
        pcm = piece.pcm if self._hz == SPEECH_HZ else self._resample(piece.pcm, last=piece.last)
        return self._voice(pcm, piece.text, last=piece.last)

    def finish(self) -> Voiced | None:
        """What is left of the answer's audio, if the model did not say which piece was its last."""
        return None if self._resampler is None else self._voice(self._resample(b"", last=True), "", last=True)

    def drop(self) -> None:
        """The answer is over. What was held back of it must not be heard at the beginning of the next."""
        self._resampler, self._text = None, ""

    def _resample(self, pcm: bytes, *, last: bool) -> bytes:
        if self._resampler is None:
            # Only here: a voice at the wire's own rate needs neither this nor the libraries behind it.
            from antiphon.audio.resample import Resampler

            self._resampler = Resampler(self._hz, SPEECH_HZ)
        resampled = self._resampler.push(pcm, last=last)
        if last:
            self._resampler = None
        return resampled

    def _voice(self, pcm: bytes, text: str, *, last: bool) -> Voiced | None:
        self._text += text
        if not pcm:
            return None
        said, self._text = self._text, ""
        return Voiced(pcm, len(pcm) * 1000 // (2 * SPEECH_HZ), said, last)
