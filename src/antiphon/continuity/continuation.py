"""Joins an answer that was cut off to the one that another connection makes in its place.

The model is asked again, and told where it was cut. It may go on from there, or begin again, at the beginning of the
answer or of a sentence: then the words and the audio that the user has already been sent are left out.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from antiphon.models.live import OutputAudio
from antiphon.protocol.limits import SPEECH_HZ, speech_ms

DECIDING_WORDS: Final = 4
"""How many equal words show that the model repeats what was said."""
MAX_HELD_MS: Final = 3_000
"""How much audio waits for the words that tell whether the model repeats what was said."""
PUNCTUATION: Final = ".,;:!?…\"'“”‘’()—–-"
SENTENCE_END: Final = re.compile(r"[.!?…][\"'”’)]*\s+")
WORD: Final = re.compile(r"\S+")
REST_OF_ANSWER: Final = bytes(2 * SPEECH_HZ // 50)
"""The silence that ends the audio of an answer of which nothing is new."""


class Continuation:
    def __init__(self, said: str, voiced: str, audio_ms: float, *, same_voice: bool) -> None:
        """`said` are the words of the answer so far, `voiced` those that the audio so far says. With the `same_voice`,
        the same words take the same time."""
        self._said = said
        self._words = list(WORD.finditer(said))
        self._starts = self._possible_starts(voiced)
        """The words, by number, from which on the model may repeat what was said, as far as that is still possible."""
        self._start: int | None = None
        """The word from which on it repeats. If it repeats nothing, this is the number of words."""
        self._voiced_chars = _count(voiced)
        self._voiced_end = voiced[-1:]
        """The end of the words before those of the next audio; empty once there are such words."""
        self._audio_ms = audio_ms
        self._same_voice = same_voice
        self._text = ""
        """Text that waits for the decision, or that is compared with what was said."""
        self._is_joined = False
        """Whether the answer has come to what is new of it."""
        self._has_passed = False
        """Whether anything new was passed on."""
        self._held: list[OutputAudio] = []
        self._held_ms = 0
        self._skip_ms: float | None = None
        """How much audio is still to be left out; None until that is decided."""
        self._skip_chars = 0
        self._repeats_audio = False
        self._carried = ""
        """Words of audio that was left out which nobody has heard yet."""
        if not self._words:
            # The model has not been told of an answer: it can only begin again.
            self._start, self._is_joined = 0, True

    def take_text(self, text: str, *, is_last: bool = False) -> str:
        """Returns what is new of the answer's text so far."""
        self._text += text
        if self._start is None:
            self._decide(is_last=is_last)
        if self._start is None:
            return ""
        if not self._is_joined:
            self._skip_said(is_last=is_last)
        if not self._is_joined:
            return ""
        new, self._text = self._text, ""
        return self._join(new)

    def take_audio(self, piece: OutputAudio | None, *, is_last: bool = False) -> Sequence[OutputAudio]:
        """Returns what is new of the audio so far. None adds no audio: a text may have brought the decision."""
        if piece is not None:
            self._held.append(piece)
            self._held_ms += speech_ms(piece.pcm)
        if self._skip_ms is None:
            if self._start is None and self._held_ms < MAX_HELD_MS and not is_last:
                return ()
            self._decide_audio()
        held, self._held = self._held, []
        return tuple(self._skip_voiced(held))

    # What the model does.

    def _possible_starts(self, voiced: str) -> list[int]:
        places = {0, *(match.end() for match in SENTENCE_END.finditer(self._said))}
        if self._said.startswith(voiced.rstrip()):
            places.add(len(voiced.rstrip()))
        starts = {next((n for n, word in enumerate(self._words) if word.end() > place), None) for place in places}
        return sorted(start for start in starts if start is not None)

    def _decide(self, *, is_last: bool) -> None:
        words = self._whole_words(is_last=is_last)
        self._starts = [start for start in self._starts if self._may_repeat(start, words)]
        if not self._starts:
            self._start, self._is_joined = len(self._words), True
            return
        first = self._starts[0]
        needed = min(DECIDING_WORDS, len(self._words) - first)
        if len(words) >= needed or (is_last and words):
            self._start = first
        elif is_last:
            self._start, self._is_joined = len(self._words), True

    def _may_repeat(self, start: int, words: Sequence[re.Match[str]]) -> bool:
        compared = min(len(words), DECIDING_WORDS, len(self._words) - start)
        return self._count_same(start, words) >= compared

    def _count_same(self, start: int, words: Sequence[re.Match[str]]) -> int:
        """Returns how many words at the beginning repeat what was said from this word on."""
        count = 0
        for said, word in zip(self._words[start:], words, strict=False):
            is_cut = said.end() == len(self._said)
            if not _is_same(said[0], word[0], is_cut=is_cut):
                break
            count += 1
        return count

    def _whole_words(self, *, is_last: bool) -> list[re.Match[str]]:
        """The words that are whole. The last one may go on in the next piece."""
        words = list(WORD.finditer(self._text))
        return words if is_last or not words or words[-1].end() < len(self._text) else words[:-1]

    # Text.

    def _skip_said(self, *, is_last: bool) -> None:
        """Leaves out the words that were said, as long as they are the same."""
        assert self._start is not None
        words = self._whole_words(is_last=is_last)
        left = len(self._words) - self._start
        same = self._count_same(self._start, words)
        if same == len(words) and same < left:
            # All of it is old so far.
            if is_last:
                self._text, self._is_joined = "", True
            return
        self._is_joined = True
        if same == 0:
            return
        last = words[same - 1]
        said = self._said[self._words[self._start + same - 1].start() :]
        is_cut_word = same == left and last[0].startswith(said)
        self._text = self._text[last.start() + len(said) if is_cut_word else last.end() :]
        # What follows a cut word directly belongs to it.
        self._has_passed = is_cut_word and bool(self._text) and not self._text[0].isspace()

    def _join(self, new: str) -> str:
        """Puts one space between what was said and what is new."""
        if self._has_passed or not self._said:
            return new
        if self._said[-1].isspace():
            new = new.lstrip()
        if not new:
            return ""
        self._has_passed = True
        return f" {new}" if _needs_space(self._said, new) else new

    # Audio.

    def _decide_audio(self) -> None:
        if self._start is None:
            # No words came for so long that the audio does not wait for them.
            self._skip_ms = 0.0
            return
        before = _count(self._said[: self._words[self._start].start()]) if self._start < len(self._words) else None
        if before is None:
            self._skip_chars = 0 if self._words else self._voiced_chars
            self._skip_ms = 0.0 if self._words else self._audio_ms
        else:
            self._skip_chars = max(0, self._voiced_chars - before)
            share = self._skip_chars / self._voiced_chars if self._voiced_chars else float(before == 0)
            self._skip_ms = self._audio_ms * share
        self._repeats_audio = self._skip_chars > 0

    def _skip_voiced(self, pieces: Sequence[OutputAudio]) -> Iterator[OutputAudio]:
        for piece in pieces:
            ms, chars = speech_ms(piece.pcm), _count(piece.text)
            old = min(chars, self._skip_chars)
            self._skip_chars -= old
            text = self._carried + self._new_words(piece.text, old)
            share = self._old_share(ms, chars=chars, old=old)
            if share < 1:
                self._carried = ""
                at = int(len(piece.pcm) // 2 * share) * 2
                yield replace(piece, pcm=piece.pcm[at:], text=text) if share or text != piece.text else piece
            elif piece.last:
                # Nothing is new, but the client must know that no more comes.
                yield replace(piece, pcm=REST_OF_ANSWER, text=text)
            else:
                self._carried = text

    def _new_words(self, text: str, old: int) -> str:
        """Leaves out the words of a piece that were heard before, and puts one space before the first that are new."""
        new = "" if self._skip_chars else _without(text, old)
        if self._voiced_end.isspace():
            new = new.lstrip()
        if new and self._voiced_end:
            if not self._repeats_audio and _needs_space(self._voiced_end, new):
                new = f" {new}"
            self._voiced_end = ""
        return new

    def _old_share(self, ms: float, *, chars: int, old: int) -> float:
        """Returns how much of a piece was heard before."""
        assert self._skip_ms is not None
        if self._same_voice or not self._voiced_chars:
            share = min(1.0, self._skip_ms / ms) if ms else 0.0
        elif chars:
            # Another voice says the same words in another time.
            share = old / chars
        else:
            share = float(self._skip_chars > 0)
        self._skip_ms = max(0.0, self._skip_ms - ms * share)
        return share


def _is_same(said: str, word: str, *, is_cut: bool) -> bool:
    """Whether a word repeats one that was said, which may have been cut off."""
    plain_said, plain = _plain(said), _plain(word)
    if plain_said == plain:
        return True
    return is_cut and (word.startswith(said) or (bool(plain_said) and plain.startswith(plain_said)))


def _needs_space(before: str, after: str) -> bool:
    return not before[-1].isspace() and not after[0].isspace() and after[0] not in PUNCTUATION


def _plain(word: str) -> str:
    return word.strip(PUNCTUATION).casefold()


def _count(text: str) -> int:
    """Returns how many characters there are, without spaces."""
    return sum(not char.isspace() for char in text)


def _without(text: str, count: int) -> str:
    """Leaves out the first characters, not counting spaces."""
    if not count:
        return text
    for place, char in enumerate(text):
        count -= not char.isspace()
        if not count:
            return text[place + 1 :]
    return ""
