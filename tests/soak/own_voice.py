"""A provider's model speaks, and its server dies: on another server, the model says the rest of the answer.

`make soak` runs it, with both simulated providers. The recogniser judges what was heard.
"""

import asyncio
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from antiphon.protocol.limits import SPEECH_HZ
from antiphon.speech.spoken import speakable
from tests.e2e.voices import VoiceServer, engines, serve
from tests.fakes.spoken import error_rate, for_ears
from tests.fault.cuts import Listener
from tests.wire.simulators import run_simulator

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(120)]

QUESTION = "tell me a joke"


MADE_S = 5.0
"""How long it takes to make the whole answer."""


@pytest.fixture
def servers(request: pytest.FixtureRequest, tmp_path: Path, models_dir: Path) -> Iterator[list[VoiceServer]]:
    """Two servers over one database, with the same simulated provider."""
    here, there = tmp_path / "server", tmp_path / "simulator"
    here.mkdir()
    there.mkdir()
    options = ("--tls-dir", "tls") if request.param == "gemini-live" else ()
    with ExitStack() as stack:
        simulator = stack.enter_context(run_simulator(request.param, *options, folder=there))
        variables = {"GEMINI_API_KEY": "any", "OPENAI_API_KEY": "any"}
        certificate = re.search(r"SSL_CERT_FILE=(\S+)", simulator.announced)
        if certificate is not None:
            variables["SSL_CERT_FILE"] = certificate[1]
        address = {
            "gemini-live": f"https://localhost:{simulator.port}#gemini-3.8-live",
            "openai-realtime": f"{simulator.url}/v1#gpt-realtime-2",
        }[request.param]
        (here / "antiphon.toml").write_text(f'[model]\nvoice = "{request.param}:{address}"\n')
        yield [stack.enter_context(serve(here, models_dir, **variables)) for _ in range(2)]


@pytest.mark.parametrize("servers", ["gemini-live", "openai-realtime"], indirect=True)
async def test_a_model_with_a_voice_of_its_own_ends_its_answer_on_another_server(
    servers: list[VoiceServer], models_dir: Path
) -> None:
    doomed, heir = servers
    listener = await Listener().open(doomed)
    await listener.send("text_message", text=QUESTION)
    await listener.until("audio")
    # The rest of the answer is sent, but never arrives.
    await asyncio.sleep(MADE_S)
    listener.cut()
    doomed.kill()
    await listener.resume(heir)
    assert listener.session["resumed"] is True
    await listener.listen_out(answers=1)
    [response] = listener.every("response")
    [pcm] = listener.speech.values()
    await listener.leave()
    async with engines(models_dir) as (_, moonshine):
        recognized = await moonshine.recognize(for_ears(pcm, SPEECH_HZ))
    print(f"{response['text']} | {recognized}")
    assert error_rate([(speakable(response["text"]), recognized)]) < 0.35
