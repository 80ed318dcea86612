"""A telephone number, spoken in groups with pauses, is heard as one, read back, corrected and saved once."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from antiphon.sound_format import MICROPHONE_HZ
from tests.e2e.voices import JOE, RMS, SLT, VoiceServer, calling, in_a_room, make_clips, serve
from tests.fakes.contacts import saved, write_contacts

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(120)]

PAUSE = in_a_room(bytes(2 * MICROPHONE_HZ))
"""A second, which is longer than the silence that ends a request."""
QUIET = 300
"""The largest sample that counts as silence."""
SAVE = "Save a phone number for Tom."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("contacts")
    write_contacts(made)
    return made


@pytest.fixture(scope="module")
def server(folder: Path, models_dir: Path) -> Iterator[VoiceServer]:
    with serve(folder, models_dir) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_saved(folder: Path) -> None:
    (folder / "saved.jsonl").unlink(missing_ok=True)


def join(pieces: Sequence[bytes]) -> bytes:
    """The pieces with a pause in between, which is as long whatever the voice adds to its sentences."""
    sound = [np.frombuffer(piece, np.int16) for piece in pieces]
    loud = [np.flatnonzero(np.abs(each) > QUIET) for each in sound]
    return PAUSE.join(
        each[0 if n == 0 else at[0] : None if n == len(sound) - 1 else at[-1]].tobytes()
        for n, (each, at) in enumerate(zip(sound, loud, strict=True))
    )


def talk(server: VoiceServer, models_dir: Path, *turns: tuple[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Says one turn after the other, each in pieces with a pause in between. Returns what was heard, and answered."""
    clips = make_clips(models_dir, [(voice, piece) for voice, pieces in turns for piece in pieces])

    async def speak() -> list[tuple[str, str]]:
        told = []
        async with calling(server.url) as person:
            for voice, pieces in turns:
                exchange = await person.say(join([clips[voice, piece] for piece in pieces]))
                told.append((exchange.transcript, exchange.response))
        return told

    return asyncio.run(speak())


def test_groups_of_digits_with_pauses_are_one_number_that_is_read_back_and_saved_once(
    server: VoiceServer, folder: Path, models_dir: Path
) -> None:
    told = talk(
        server,
        models_dir,
        (JOE, [SAVE]),
        (SLT, ["Five five five.", "One two three four.", "Six seven eight."]),
        (SLT, ["Yes."]),
    )
    answers = [answer for _, answer in told]
    assert answers == ["What's the number?", "That's 5 5 5, 1 2 3, 4 6 7 8, right?", "Saved."], told
    assert saved(folder) == [{"name": "Tom", "phone": "5551234678"}]


def test_a_number_is_said_again_after_a_no_and_then_corrected_in_part(
    server: VoiceServer, folder: Path, models_dir: Path
) -> None:
    told = talk(
        server,
        models_dir,
        (JOE, [SAVE]),
        (JOE, ["Five five five, one two three five."]),
        (JOE, ["No."]),
        (RMS, ["Five five five.", "One two three nine."]),
        (RMS, ["No, one two three four."]),
        (JOE, ["Yes."]),
    )
    assert [answer for _, answer in told][1:] == [
        "That's 5 5 5, 1 2 3 5, right?",
        "Sorry. Please say the number again, digit by digit.",
        "That's 5 5 5, 1 2 3 9, right?",
        "That's 5 5 5, 1 2 3 4, right?",
        "Saved.",
    ], told
    assert saved(folder) == [{"name": "Tom", "phone": "5551234"}]
