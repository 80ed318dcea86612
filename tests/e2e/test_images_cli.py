"""Images at the command line: a tool makes one, the doctor knows the service, and a user's data includes theirs."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.terminal import Terminal
from tests.fakes.image_api import PNG, encoded
from tests.fakes.local_http import Received, Reply, served_in_thread

pytestmark = pytest.mark.real_time

ARGS = '{"prompt": "a lighthouse at dusk"}'


def answer(request: Received) -> Reply:
    return Reply({"created": 1, "data": [{"b64_json": encoded(PNG)}] if request.method == "POST" else []})


@pytest.fixture
def model() -> Iterator[str]:
    """The setting for an image service on loopback."""
    with served_in_thread(answer) as url:
        yield f"openai:{url}/v1#flux"


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def test_a_tool_makes_an_image_that_is_exported_and_deleted_with_the_users_data(terminal: Terminal, model: str) -> None:
    made = terminal.run("tools", "run", "image_generate", "--args", ARGS, "--json", ANTIPHON_IMAGES__MODEL=model)
    assert made.code == 0, made.err
    url = made.json["data"]["url"]
    [line] = [json.loads(each) for each in terminal.run("data", "export").out.splitlines()]
    assert (line["kind"], line["prompt"], line["url"]) == ("image", "a lighthouse at dusk", url)
    assert "file" not in line
    exported = terminal.run("data", "export", "--out", "data.jsonl", "--files", "pictures")
    assert exported.code == 0, exported.err
    [line] = [json.loads(each) for each in (terminal.folder / "data.jsonl").read_text().splitlines()]
    assert [str(path.relative_to(terminal.folder)) for path in terminal.folder.glob("pictures/*")] == [line["file"]]
    assert (terminal.folder / line["file"]).read_bytes() == PNG
    again = terminal.run("data", "export", "--files", "pictures")
    assert (again.code, again.out) == (1, "")
    assert "pictures exists. Choose another name." in again.err
    assert "nothing" in terminal.run("data", "delete", "--user", "other", "--yes").out
    assert "1 image" in terminal.run("data", "delete", "--user", "local", "--yes").out
    assert terminal.run("data", "export").out == ""


def test_without_a_service_the_command_says_what_to_set(terminal: Terminal) -> None:
    shown = terminal.run("tools", "run", "image_generate", "--args", ARGS)
    assert shown.code == 1
    assert "PERMANENT" in shown.err
    assert "images.model" in shown.err


def test_prompts_are_drafted_without_any_service(terminal: Terminal) -> None:
    args = '{"idea": "a lighthouse at dusk", "variants": 2}'
    shown = terminal.run("tools", "run", "image_draft_prompt", "--args", args, "--json")
    assert shown.code == 0, shown.err
    assert len(shown.json["data"]["variants"]) == 2


def test_the_doctor_asks_a_service_on_this_machine(terminal: Terminal, model: str) -> None:
    shown = terminal.run("doctor", ANTIPHON_IMAGES__MODEL=model, ANTIPHON_SERVER__PORT="0")
    assert f"images: {model}; its server answers" in shown.out


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("", "images: none are made"),
        ("openai:gpt-image-2.5-flare", "needs an API key. Set OPENAI_API_KEY"),
        ("gemini:gemini-3.1-flash-image", "needs an API key. Set GEMINI_API_KEY"),
        ("openai:http://127.0.0.1:9/v1#flux", "nothing answers at"),
        ("openai:https://images.example.org/v1#flux", "on another machine"),
        ("openai:http://127.0.0.1:9/v1", "images.model: "),
    ],
)
def test_the_doctor_says_what_is_wrong_with_the_setting(terminal: Terminal, model: str, said: str) -> None:
    variables = {
        "ANTIPHON_IMAGES__MODEL": model,
        "ANTIPHON_SERVER__PORT": "0",
        "OPENAI_API_KEY": "",
        "GEMINI_API_KEY": "",
    }
    assert said in terminal.run("doctor", **variables).out


def test_a_setting_that_names_no_provider_is_an_error_with_the_forms(terminal: Terminal) -> None:
    shown = terminal.run("tools", "list", ANTIPHON_IMAGES__MODEL="dall-e-3")
    assert shown.code == 1
    assert 'it must be a model that makes images, such as "openai:gpt-image-2.5-flare"' in shown.err
