"""The messages of a session to its client: numbered, kept for a while, and sent while a socket is connected."""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import merge
from typing import Final, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from antiphon.protocol import codec
from antiphon.protocol.client_messages import AudioForm, Feature
from antiphon.protocol.closing import Close
from antiphon.protocol.limits import SPEECH_HZ, speech_ms
from antiphon.protocol.server_messages import Audio, History, Queued, QueuedText, ServerMessage
from antiphon.storage.sessions import SentMessages

KEPT_MESSAGES: Final = 1_000
KEPT_BYTES: Final = 1 << 20
"""A client that has missed more than this gets the newest messages, and the history instead of the rest."""
KEPT_SPEECH_BYTES: Final = 1 << 20
"""How much unheard speech is kept as audio: 23 seconds. Of older pieces only the words are kept."""
MAX_AHEAD: Final = 1 << 20
"""The most messages that a client can have seen of a process that died before it stored them."""

Frame = str | bytes


class Link(Protocol):
    """A socket, as a session sees it. No method waits: the socket itself closes a client that reads too slowly."""

    def send(self, frame: Frame, *, is_replay: bool = False) -> None:
        """`is_replay`: this may be a lot at once, and that is not the client's fault."""
        ...

    def close(self, close: Close) -> None: ...


class SpokenPiece(Struct, frozen=True, tag="audio", tag_field="type"):
    """A piece of speech as it is stored: its words, from which the audio can be synthesised again."""

    n: int
    turn: int
    seq: int
    text: str
    ms: int
    last: bool = False
    is_filler: bool = False
    """Whether it only filled the wait for the answer."""


class VoidedSpeech(Struct, frozen=True, tag="voided", tag_field="type"):
    """Pieces from a number on were never received, and are sent again under other numbers, after this one."""

    n: int
    turn: int
    first_n: int


class HeardSpeech(Struct, frozen=True, tag="heard", tag_field="type"):
    """How much of a turn's speech the client has, as noted by the process that took the session over."""

    n: int
    turn: int
    text: str = ""
    ms: int = 0
    last_seq: int = -1
    missing_ms: int = 0
    """How much of the turn's speech has not reached the client."""
    filler_ms: int = 0
    """How much was played before the answer, to fill the wait for it."""

    def and_piece(self, piece: SpokenPiece, seen_n: int) -> "HeardSpeech":
        if piece.is_filler:
            filler_ms = piece.ms if piece.n <= seen_n else 0
            return replace(self, filler_ms=self.filler_ms + filler_ms, last_seq=piece.seq)
        if piece.n > seen_n:
            return replace(self, missing_ms=self.missing_ms + piece.ms)
        return replace(self, text=self.text + piece.text, ms=self.ms + piece.ms, last_seq=piece.seq)


@dataclass(slots=True)
class Unheard:
    """A piece of speech that the client may not have played yet."""

    piece: SpokenPiece
    pcm: bytes | None


@dataclass(frozen=True, slots=True)
class _Numbered:
    n: int
    frame: Frame
    stored: str | None
    """The message as it is stored; None if it is not stored."""
    is_kept: bool
    """Whether it is replayed as it is stored. Speech is replayed as audio instead."""
    is_secret: bool = False
    """Whether it is kept in memory but never stored."""


class RecentMessages:
    """Numbered messages. When there are too many, the oldest are dropped."""

    def __init__(self) -> None:
        self._messages: deque[tuple[int, str]] = deque()
        self._bytes = 0
        self.dropped_n = 0
        """The number of the last message that was dropped."""

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return iter(self._messages)

    def __len__(self) -> int:
        return len(self._messages)

    def add(self, n: int, text: str) -> None:
        self._messages.append((n, text))
        self._bytes += len(text)
        while len(self._messages) > KEPT_MESSAGES or (self._bytes > KEPT_BYTES and len(self._messages) > 1):
            self.dropped_n, forgotten = self._messages.popleft()
            self._bytes -= len(forgotten)


class Outbox:
    def __init__(self, last_n: int = 0, *, keeps: bool = True) -> None:
        """Without `keeps`, nothing is kept for a replay: the client will not come back."""
        self.last_n = last_n
        self.unheard: deque[Unheard] = deque()
        """Speech that was sent and that the client may not have played yet."""
        self.unspoken: deque[Unheard] = deque()
        """Speech that must be synthesised and sent again."""
        self._keeps = keeps
        self._kept = RecentMessages()
        self._unsaved = RecentMessages()
        self._staged: list[_Numbered] = []
        self._held: list[_Numbered] | None = None
        """Messages that wait until the staged ones are stored. None if nothing is staged."""
        self._released = asyncio.Event()
        self._released.set()
        self._first_n = 0
        """A client that has not seen this message is given the history."""
        self._link: Link | None = None
        self._form = AudioForm.JSON
        self.observe: Callable[[ServerMessage], None] | None = None
        """Called with every message but speech, before it is sent."""
        self.holds = False
        """Whether the client follows `hold` and `resume`."""
        self.shows_recording = False
        """Whether the client shows `recording`."""
        self.on_speech: Callable[[int, bytes], None] = lambda turn, pcm: None
        """Called with the turn and the speech that a connected client is sent."""

    @property
    def has_unsaved(self) -> bool:
        """Whether messages were sent that are not stored yet."""
        return bool(self._unsaved)

    @property
    def link(self) -> Link | None:
        return self._link

    def send(self, message: ServerMessage, *, once: bool = False, secret: bool = False) -> None:
        """A message sent `once` is neither kept nor stored: it contains a secret, or is useless later.

        A `secret` one is kept in memory for a client that comes back to this process, but not stored.
        """
        self._deliver(self._number(message, once=once, secret=secret))

    def send_audio(
        self, turn: int, seq: int, pcm: bytes, *, text: str = "", last: bool = False, once: bool = False
    ) -> None:
        """Sends speech at the wire's rate. Its words are stored; its audio is kept in memory only.

        While older speech is `unspoken`, this waits behind it.
        """
        if self.unspoken and not once:
            self.unspoken.append(Unheard(SpokenPiece(0, turn, seq, text, speech_ms(pcm), last), pcm))
            return
        self._send_audio(turn, seq, pcm, text=text, last=last, once=once)

    def send_filler(self, turn: int, seq: int, pcm: bytes) -> None:
        """Sends speech that fills the wait for an answer. A client that misses it does not need it later."""
        if not self.unspoken:
            self._send_audio(turn, seq, pcm, text="", last=False, is_filler=True)

    def send_again(self, piece: SpokenPiece, pcm: bytes) -> None:
        """Sends speech that was `unspoken`, under a new number, since the client has seen higher ones."""
        newest = self.unheard[-1].piece if self.unheard else None
        # Two pieces may have been made again as three.
        seq = piece.seq if newest is None or newest.turn != piece.turn else max(piece.seq, newest.seq + 1)
        self._send_audio(piece.turn, seq, pcm, text=piece.text, last=piece.last)

    def _send_audio(
        self, turn: int, seq: int, pcm: bytes, *, text: str, last: bool, once: bool = False, is_filler: bool = False
    ) -> None:
        self.last_n += 1
        piece = SpokenPiece(self.last_n, turn, seq, text, speech_ms(pcm), last, is_filler)
        stored = None
        if self._keeps and not once:
            stored = msgspec.json.encode(piece).decode()
            if not is_filler:
                self.unheard.append(Unheard(piece, pcm))
                self._drop_old_audio()
        self._deliver(_Numbered(piece.n, self._encode(piece, pcm), stored, is_kept=False))
        if self._link is not None:
            self.on_speech(turn, pcm)

    def take_unspoken(self, turn: int) -> tuple[str, int]:
        """Returns the words of a turn that are `unspoken`, and how long their audio was. Nothing is unspoken then."""
        pieces = [each.piece for each in self.unspoken if each.piece.turn == turn]
        self.unspoken = deque()
        return "".join(piece.text for piece in pieces).strip(), sum(piece.ms for piece in pieces)

    def drop_speech(self) -> None:
        """The client has played the speech, or never will. Speech is most of a session's memory."""
        self.unheard, self.unspoken = deque(), deque()

    def drop_all(self) -> None:
        """Drops everything, since the user has cleared the conversation."""
        self.drop_speech()
        self._kept, self._unsaved = RecentMessages(), RecentMessages()
        self._kept.dropped_n = self.last_n

    # What is told only once it is stored.

    def stage(self, *messages: ServerMessage) -> SentMessages:
        """Numbers messages, and returns everything that is to be stored: them and what was sent before them.

        Neither they nor later messages are sent before `release`. `withdraw` drops them.
        """
        assert self._held is None, "messages are already staged"
        unsaved = self._take_unsaved()
        self._held = []
        self._released.clear()
        self._staged = [self._number(message) for message in messages]
        staged = [(said.n, said.stored) for said in self._staged if said.stored is not None]
        return [*unsaved, *staged]

    def release(self) -> None:
        """Sends the staged messages, which are stored, or were put back to be stored later."""
        staged, held = self._unstage()
        for said in staged:
            self._deliver(said, is_stored=True)
        for said in held:
            self._deliver(said)

    def withdraw(self, sent: SentMessages) -> None:
        """Drops the staged messages, which could not be stored. `sent` is what `stage` returned."""
        staged, held = self._unstage()
        numbers = {said.n for said in staged}
        self.put_back([each for each in sent if each[0] not in numbers])
        for said in held:
            self._deliver(said)

    async def is_released(self) -> None:
        """Returns when nothing is staged."""
        await self._released.wait()

    @contextmanager
    def saving(self) -> Iterator[SentMessages]:
        """Yields what was sent and is not stored yet. If the block fails, it remains to be stored."""
        unsaved = self._take_unsaved()
        try:
            yield unsaved
        except BaseException:
            self.put_back(unsaved)
            raise

    def _take_unsaved(self) -> SentMessages:
        unsaved, self._unsaved = self._unsaved, RecentMessages()
        return list(unsaved)

    def put_back(self, unsaved: SentMessages) -> None:
        """Keeps what could not be stored, to be stored with the next messages."""
        since, self._unsaved = self._unsaved, RecentMessages()
        for n, text in (*unsaved, *since):
            self._unsaved.add(n, text)

    # Clients that come and go.

    def attach(self, link: Link, form: AudioForm, features: Collection[str] = ()) -> Link | None:
        """Connects the client. Returns the link that was connected before, if any."""
        before, self._link, self._form = self._link, link, form
        self.holds = Feature.HOLD in features
        self.shows_recording = Feature.RECORDING in features
        return before

    def detach(self, link: Link) -> bool:
        """Disconnects the client. False if the link had already been replaced."""
        if self._link is not link:
            return False
        self._link = None
        return True

    def restore(self, sent: SentMessages, seen_n: int) -> None:
        """Takes over what an earlier process sent and stored.

        If that process was killed, the client may have seen more: those numbers are not used again.
        """
        for n, text in sent:
            if not is_speech(text):
                self._kept.add(n, text)
            self.last_n = max(self.last_n, n)
        self.last_n = max(self.last_n, min(seen_n, self.last_n + MAX_AHEAD))
        self._first_n = self.last_n + 1

    def note_heard(self, heard: HeardSpeech) -> None:
        """Stores how much the client has heard. The pieces that were stored before no longer count: their numbers mean
        nothing once the client has seen higher ones."""
        self._note(heard)

    def _note(self, noted: HeardSpeech | VoidedSpeech) -> None:
        self.last_n += 1
        self._unsaved.add(self.last_n, msgspec.json.encode(replace(noted, n=self.last_n)).decode())

    def lacks(self, after_n: int) -> bool:
        """Whether a replay from that number on is incomplete: messages were dropped, or lost with their process."""
        return after_n < max(self._kept.dropped_n, self._first_n)

    def replay(self, after_n: int, up_to_n: int) -> None:
        """Sends what the client has not seen. Speech without audio, and all speech after it, becomes `unspoken`."""
        kept = [(n, text) for n, text in self._kept if after_n < n <= up_to_n]
        spoken: list[tuple[int, Frame]] = []
        unheard, self.unheard = self.unheard, deque()
        again: list[Unheard] = []
        for each in unheard:
            if each.piece.n > after_n and (again or each.pcm is None):
                again.append(each)
                continue
            self.unheard.append(each)
            if after_n < each.piece.n <= up_to_n and each.pcm is not None:
                spoken.append((each.piece.n, self._encode(each.piece, each.pcm)))
                self.on_speech(each.piece.turn, each.pcm)
        self.unspoken.extendleft(reversed(again))
        if again:
            self._note(VoidedSpeech(0, again[0].piece.turn, again[0].piece.n))
        if self._link is not None:
            for _, frame in merge(kept, spoken, key=lambda each: each[0]):
                self._link.send(frame, is_replay=True)

    def send_history(self, history: History) -> None:
        """Sends the history, which is not stored. A client that has not seen it gets it again."""
        said = self._number(history, once=True)
        self._first_n = said.n
        if self._link is not None:
            self._link.send(said.frame, is_replay=True)

    def _number(self, message: ServerMessage, *, once: bool = False, secret: bool = False) -> _Numbered:
        self.last_n += 1
        if self.observe is not None:
            self.observe(message)
        frame = codec.encode(message, self.last_n)
        is_kept = self._keeps and not once
        return _Numbered(self.last_n, frame, frame if is_kept else None, is_kept, secret)

    def _deliver(self, said: _Numbered, *, is_stored: bool = False) -> None:
        if self._held is not None:
            self._held.append(said)
            return
        if said.stored is not None and said.is_kept:
            self._kept.add(said.n, said.stored)
        if said.stored is not None and not (is_stored or said.is_secret):
            self._unsaved.add(said.n, said.stored)
        if self._link is not None:
            self._link.send(said.frame)

    def _unstage(self) -> tuple[list[_Numbered], list[_Numbered]]:
        staged, held = self._staged, self._held or []
        self._staged, self._held = [], None
        self._released.set()
        return staged, held

    def _encode(self, piece: SpokenPiece, pcm: bytes) -> Frame:
        if self._form is AudioForm.BINARY:
            return codec.encode_audio(piece.n, piece.turn, piece.seq, pcm)
        audio = Audio(data=codec.wav_base64(pcm, SPEECH_HZ), turn=piece.turn, seq=piece.seq, last=piece.last)
        return codec.encode(audio, piece.n)

    def _drop_old_audio(self) -> None:
        """Keeps the audio of the newest pieces, as far as there is room."""
        room = KEPT_SPEECH_BYTES
        for each in reversed(self.unheard):
            if each.pcm is None:
                return
            room -= len(each.pcm)
            if room < 0:
                each.pcm = None


def is_speech(stored: str) -> bool:
    """Whether a stored text describes speech, and is not a message."""
    return stored.startswith(_SPEECH)


def heard_of(turn: int, sent: SentMessages, seen_n: int) -> HeardSpeech | None:
    """How much of a turn a client has heard that has seen messages up to `seen_n`; None if nothing was spoken."""
    heard: HeardSpeech | None = None
    pieces: list[SpokenPiece] = []
    for _, text in sent:
        match msgspec.json.decode(text, type=SpokenPiece | VoidedSpeech | HeardSpeech) if is_speech(text) else None:
            case HeardSpeech() as noted if noted.turn == turn:
                heard, pieces = replace(noted, missing_ms=0), []
            case VoidedSpeech(first_n=first_n) as voided if voided.turn == turn:
                pieces = [piece for piece in pieces if piece.n < first_n]
            case SpokenPiece() as piece if piece.turn == turn:
                pieces.append(piece)
    for piece in pieces:
        heard = (heard or HeardSpeech(0, turn)).and_piece(piece, seen_n)
    return heard


def rest_of(answer: str, heard: HeardSpeech) -> list[str]:
    """Returns the words of an answer that were not heard. For speech without known words, its length decides."""
    words, count = answer.split(), len(heard.text.split())
    if not count and heard.ms:
        count = round(len(words) * heard.ms / (heard.ms + heard.missing_ms))
    return words[count:]


_SPEECH: Final = ('{"type":"audio",', '{"type":"voided",', '{"type":"heard",')
"""How a stored text about speech begins: its type is the first field."""


def last_queue(sent: SentMessages) -> tuple[QueuedText, ...]:
    """Returns the typed messages that were queued when this was sent."""
    newest = next((text for _, text in reversed(sent) if text.startswith(_QUEUED)), None)
    return () if newest is None else msgspec.json.decode(newest, type=Queued).messages


_QUEUED: Final = f'{{"type":"{codec.tag_of(Queued)}",'
