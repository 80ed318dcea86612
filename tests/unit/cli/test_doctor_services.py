import sys
from pathlib import Path
from typing import Literal

import pytest

from antiphon.cli.doctor_services import check_home, check_recording, check_web
from antiphon.cli.findings import Finding
from antiphon.config import Home, Recording, Settings, Weather, Web
from antiphon.services.home import TOKEN_VARIABLE
from tests.fakes.home_assistant import TOKEN, FakeHome
from tests.fakes.local_http import Reply, served_in_thread

pytestmark = pytest.mark.real_time


def make_settings(
    tmp_path: Path, web: Web | None = None, weather: Weather | None = None, home: Home | None = None
) -> Settings:
    return Settings(tmp_path, tmp_path, web=web or Web(), weather=weather or Weather(), home=home or Home())


def test_the_sources_of_the_web_are_named(tmp_path: Path) -> None:
    weather, search = check_web(make_settings(tmp_path, weather=Weather(location="Oslo")))
    assert weather == Finding(True, "weather: https://api.open-meteo.com (Oslo)")
    assert search == Finding(True, "web search: DuckDuckGo")


def test_without_a_search_engine_the_doctor_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("antiphon.cli.doctor_services.find_spec", lambda name: None)
    *_, search = check_web(make_settings(tmp_path))
    assert "pip install 'antiphon[search]'" in search.text


def test_a_searxng_is_asked(tmp_path: Path) -> None:
    with served_in_thread(lambda request: Reply({"results": []})) as url:
        *_, search = check_web(make_settings(tmp_path, Web(searxng=url)))
    assert search == Finding(True, f"web search: SearXNG at {url} answers")


def test_a_searxng_without_json_is_a_problem_with_its_fix(tmp_path: Path) -> None:
    with served_in_thread(lambda request: Reply(status=403)) as url:
        *_, search = check_web(make_settings(tmp_path, Web(searxng=url)))
    assert not search.ok
    assert "search.formats" in search.text


def test_a_home_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    fake = FakeHome()
    with served_in_thread(fake.respond) as url:
        [finding] = check_home(make_settings(tmp_path, home=Home(url=url)))
    assert finding == Finding(True, f"home: Home Assistant at {url} answers, with 26 devices in 9 areas")


def test_a_wrong_token_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "wrong")
    fake = FakeHome()
    with served_in_thread(fake.respond) as url:
        [finding] = check_home(make_settings(tmp_path, home=Home(url=url)))
    assert not finding.ok
    assert "doesn't accept my access token" in finding.text
    assert TOKEN_VARIABLE in finding.text


def test_a_missing_token_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    [finding] = check_home(make_settings(tmp_path, home=Home(url="http://127.0.0.1:1")))
    assert not finding.ok
    assert TOKEN_VARIABLE in finding.text


def test_no_home_is_fine(tmp_path: Path) -> None:
    [finding] = check_home(make_settings(tmp_path))
    assert finding.ok


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ("off", "recording: calls are not recorded, since recording.calls is off"),
        ("ask", "recording: calls that the user wants to have recorded; into {folder}"),
        ("always", "recording: every call; into {folder}"),
    ],
)
def test_the_doctor_says_which_calls_are_recorded(tmp_path: Path, calls: Literal["off", "ask"], told: str) -> None:
    [finding] = check_recording(Settings(tmp_path, tmp_path, recording=Recording(calls=calls)))
    assert finding == Finding(True, told.format(folder=tmp_path / "recordings"))


def test_recording_without_its_package_is_a_problem_with_its_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "soundfile", None)
    [finding] = check_recording(Settings(tmp_path, tmp_path, recording=Recording(calls="ask")))
    assert not finding.ok
    assert "pip install 'antiphon[recording]'" in finding.text
