"""Questions that are asked aloud, without any model, and answered from the knowledge base with their source."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.e2e.terminal import Terminal
from tests.e2e.voices import JOE, RMS, SLT, VoiceServer, ask_each, calling, make_clips, serve

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(180)]

RECORD = """---
title: Working here
---
Every employee has thirty days of vacation each year. The keys of the meeting room are in the kitchen.
"""
VACATION = "How many days of vacation do we have each year?"
KEYS = "Where are the keys of the meeting room?"
UNKNOWN = "Who painted the ceiling of the chapel?"
ASKED = ((JOE, VACATION), (SLT, VACATION), (JOE, KEYS), (RMS, KEYS))

Clips = Mapping[tuple[str, str], bytes]


@pytest.fixture(scope="module")
def clips(models_dir: Path) -> Clips:
    return make_clips(models_dir, [*ASKED, (JOE, UNKNOWN)])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[VoiceServer]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "working.md").write_text(RECORD)
    # Other questions would be looked up on the web.
    with serve(folder, models_dir, ANTIPHON_TOOLS__DISABLE='["quick_answer"]') as made:
        # The server is running: it notices what another process adds.
        added = Terminal(folder).run("kb", "add", "working.md")
        assert added.code == 0, added.err
        yield made


def test_a_spoken_question_is_answered_from_the_knowledge_base_with_its_source(
    server: VoiceServer, clips: Clips
) -> None:
    told = asyncio.run(ask_each(server.url, [clips[asked] for asked in ASKED]))
    right = [
        answer_s > 1.0 and "“Working here”" in response and ("thirty days" in response or "in the kitchen" in response)
        for _, response, answer_s in told
    ]
    # One clip may be misheard.
    assert sum(right) >= len(right) - 1, "\n".join(map(str, told))


def test_what_the_knowledge_base_does_not_know_is_not_answered(server: VoiceServer, clips: Clips) -> None:
    async def ask() -> str:
        async with calling(server.url) as person:
            return (await person.say(clips[JOE, UNKNOWN])).response

    response = asyncio.run(ask())
    assert response.startswith("I don't know")
    assert "Working here" not in response
