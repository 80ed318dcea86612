"""The tools of the web and the home on the command line, against local servers that answer as the services do."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.services.home import TOKEN_VARIABLE
from tests.fakes.home_assistant import TOKEN, FakeHome
from tests.fakes.local_http import served_in_thread
from tests.fakes.public_web import PublicWeb

pytestmark = pytest.mark.real_time

TOOLS = ("get_weather", "get_forecast", "web_search", "quick_answer", "ha_state", "ha_control")


def antiphon(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ANTIPHON_", "HOME_ASSISTANT"))}
    return subprocess.run(
        [sys.executable, "-m", "antiphon", *arguments],
        cwd=folder,
        env={**clean, "ANTIPHON_DATA_DIR": str(folder / "data"), **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )


def run(folder: Path, tool: str, args: dict[str, object], **env: str) -> subprocess.CompletedProcess[str]:
    return antiphon(folder, "tools", "run", tool, "--args", json.dumps(args), **env)


def test_the_weather_is_told(tmp_path: Path) -> None:
    web = PublicWeb()
    with served_in_thread(web.respond) as url:
        env = {"ANTIPHON_WEATHER__FORECAST_URL": url, "ANTIPHON_WEATHER__GEOCODING_URL": url}
        done = run(tmp_path, "get_weather", {}, ANTIPHON_WEATHER__LOCATION="Oslo", **env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("It's 12 degrees and raining in Oslo.\n")


def test_a_home_is_controlled(tmp_path: Path) -> None:
    home = FakeHome()
    (tmp_path / "antiphon.toml").touch()
    with served_in_thread(home.respond) as url:
        (tmp_path / "antiphon.toml").write_text(f'[home]\nurl = "{url}"\n')
        done = run(tmp_path, "ha_control", {"entity": "kitchen light", "action": "on"}, **{TOKEN_VARIABLE: TOKEN})
        asked = run(tmp_path, "ha_control", {"entity": "garage", "action": "open"}, **{TOKEN_VARIABLE: TOKEN})
    assert done.stdout.startswith("I've turned on the Kitchen Light.\n"), done.stderr
    assert asked.returncode == 1
    assert "CONFIRMATION_REQUIRED" in asked.stderr
    assert home.state("light.kitchen") == "on"
    assert home.state("cover.garage") == "closed"


def test_tools_are_listed_though_nothing_is_configured(tmp_path: Path) -> None:
    done = antiphon(tmp_path, "tools", "list", "--json")
    assert {tool["toolId"] for tool in json.loads(done.stdout)["tools"]}.issuperset(TOOLS)


def test_a_wrong_address_in_the_settings_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "antiphon.toml").write_text('[home]\nurl = "http://user:secret@homeassistant.local"\n')
    done = antiphon(tmp_path, "tools", "list")
    assert done.returncode != 0
    [line] = done.stderr.splitlines()
    assert "home.url" in line
    assert "secret" not in line
