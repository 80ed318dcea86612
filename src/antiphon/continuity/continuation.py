"""Joins an answer that was cut off to the one that another connection makes in its place.

The model is asked again, and told where it was cut. It may go on from there, or begin again: then the words and the
audio that the user has already been sent are left out.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from antiphon.models.live import OutputAudio
from antiphon.protocol.limits import SPEECH_HZ, speech_ms

DECIDING_WORDS: Final = 4
"""How many equal words at the beginning show that the model has begun again."""
MAX_HELD_MS: Final = 3_000
"""How much audio waits for the words that tell whether the model has begun again."""
PUNCTUATION: Final = ".,;:!?…\"'“”‘’()—–-"


class Continuation:
    def __init__(self, said: str, voiced: str, audio_ms: float, *, same_voice: bool) -> None:
        """`said` are the words of the answer so far, `voiced` those that the audio so far says. With the `same_voice`,
        the same words take the same time."""
        self._said = [_plain(word) for word in said.split()]
        self._needs_space = bool(said) and not said[-1].isspace()
        self._voiced_words = len(voiced.split())
        self._audio_ms = audio_ms
        self._same_voice = same_voice
        self._text = ""
        """Text that waits for the decision, or that is compared with what was said."""
        self._has_begun_again: bool | None = None if self._said else False
        self._held: list[OutputAudio] = []
        self._held_ms = 0
        self._skipped_ms = 0.0
        self._skipped_words = 0

    def take_text(self, text: str, *, is_last: bool = False) -> str:
        """Returns what is new of the answer's text so far."""
        self._text += text
        if self._has_begun_again is None:
            self._decide(is_last=is_last)
        if self._has_begun_again is None:
            return ""
        new = self._skip_said(is_last=is_last) if self._has_begun_again and self._said else self._take_all()
        if new and self._needs_space:
            self._needs_space = False
            return new if new[0].isspace() else f" {new}"
        return new

    def take_audio(self, piece: OutputAudio | None, *, is_last: bool = False) -> Sequence[OutputAudio]:
        """Returns what is new of the audio so far. None adds no audio: a text may have brought the decision."""
        if piece is not None:
            self._held.append(piece)
            self._held_ms += speech_ms(piece.pcm)
        if self._has_begun_again is None and self._held_ms < MAX_HELD_MS and not is_last:
            return ()
        held, self._held = self._held, []
        return tuple(held if not self._has_begun_again else self._skip_voiced(held))

    def _decide(self, *, is_last: bool) -> None:
        words = [_plain(word) for word in self._words(is_last=is_last)]
        needed = min(DECIDING_WORDS, len(self._said))
        known = min(len(words), needed)
        if not all(self._is_same(place, word) for place, word in enumerate(words[:known])):
            self._has_begun_again = False
        elif known == needed or is_last:
            self._has_begun_again = bool(words)

    def _words(self, *, is_last: bool) -> list[str]:
        """The words that are whole. The last one may go on in the next piece."""
        words = self._text.split()
        return words if is_last or not self._text or self._text[-1].isspace() else words[:-1]

    def _is_same(self, place: int, word: str) -> bool:
        """Whether a word repeats what was said. The last word that was said may have been cut off."""
        said = self._said[place]
        return word == said or (place == len(self._said) - 1 and bool(said) and word.startswith(said))

    def _skip_said(self, *, is_last: bool) -> str:
        """Leaves out the words that were said, as long as they are the same."""
        words = self._words(is_last=is_last)
        skipped = 0
        while skipped < min(len(words), len(self._said)) and self._is_same(skipped, _plain(words[skipped])):
            skipped += 1
        if skipped == len(words) and skipped < len(self._said):
            # All of it is old so far.
            return ""
        rest = self._text
        for _ in range(skipped):
            rest = rest.lstrip()
            word = rest.split(maxsplit=1)[0]
            rest = rest[len(word) :]
        self._said, self._text = [], ""
        return rest

    def _take_all(self) -> str:
        text, self._text = self._text, ""
        return text

    def _skip_voiced(self, pieces: Sequence[OutputAudio]) -> Iterator[OutputAudio]:
        for piece in pieces:
            ms = speech_ms(piece.pcm)
            left_ms = self._audio_ms - self._skipped_ms
            if self._same_voice:
                share = min(1.0, left_ms / ms) if ms and left_ms > 0 else 0.0
            else:
                share = self._share_of_words(piece, ms)
            if share <= 0:
                yield piece
                continue
            self._skipped_ms += ms * share
            if share < 1:
                yield _after(piece, share)
            elif piece.last:
                # Nothing is new, but the client must know that no more comes.
                yield replace(piece, pcm=bytes(2 * SPEECH_HZ // 50), text="")

    def _share_of_words(self, piece: OutputAudio, ms: int) -> float:
        """Another voice says the same words in another time."""
        left = self._voiced_words - self._skipped_words
        words = len(piece.text.split())
        if left <= 0:
            return 0.0
        if not words:
            return 1.0 if self._skipped_ms + ms < self._audio_ms else 0.0
        self._skipped_words += min(words, left)
        return min(1.0, left / words)


def _after(piece: OutputAudio, share: float) -> OutputAudio:
    """The rest of a piece, without its first share."""
    at = int(len(piece.pcm) // 2 * share) * 2
    words = piece.text.split(" ")
    return replace(piece, pcm=piece.pcm[at:] or bytes(2), text=" ".join(words[round(len(words) * share) :]))


def _plain(word: str) -> str:
    return word.strip(PUNCTUATION).casefold()
