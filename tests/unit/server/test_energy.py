"""`/api/energy` and `/api/sessions/{id}/renew`: what users see of their models, and change by hand."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from antiphon.continuity.counters import ReconnectOutcome
from antiphon.models.live import ModelFactory
from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.security.quota import Kind, Limit, Quota, Rate
from antiphon.server.energy import LIST_S
from antiphon.session.stored_session import LEASE_MS
from antiphon.tools.spec import Mode
from tests.fakes.calls import Client, looking
from tests.fakes.scripted_live import PROFILE, ScriptedLive
from tests.fakes.web import WebApp, WebApps

LABELS = ("mode", "level", "model", "reason", "outcome")


def live(name: str, **profile: Any) -> ModelFactory:
    described = replace(PROFILE, name=name, **profile)
    return ModelFactory(described, lambda: ScriptedLive(profile=described))


@pytest.fixture
def web(apps: WebApps) -> WebApp:
    """A server with three voice models, of which the best one can resume its sessions."""
    web = apps.open(text=["One.", "Two."])
    web.server.use(Mode.VOICE, live("best", resumes=True), live("good"), live("local"))
    return web


async def levels_of(web: WebApp, user: str = "ann") -> list[tuple[str, int, int]]:
    sessions = (await web.get("/api/energy", user=user)).json()["sessions"]
    return [(each["user"], each["voice"], each["text"]) for each in sessions]


async def test_all_models_are_listed_with_their_levels(web: WebApp) -> None:
    web.server.ladders[Mode.VOICE].rungs[3].cool_down(40)
    web.server.ladders[Mode.VOICE].rungs[2].pass_over()
    told = (await web.get("/api/energy")).json()
    ladders = {each["mode"]: each for each in told["ladders"]}
    assert (ladders["voice"]["max"], ladders["voice"]["best"]) == (3, 2)
    assert ladders["voice"]["rungs"] == [
        {
            "level": 3,
            "model": "best",
            "resumable": True,
            "fallback": False,
            "cooling_s": 40.0,
            "reachable": True,
        },
        {"level": 2, "model": "good", "resumable": False, "fallback": False, "cooling_s": 0.0, "reachable": False},
        {"level": 1, "model": "local", "resumable": False, "fallback": True, "cooling_s": 0.0, "reachable": True},
    ]
    assert [rung["level"] for rung in ladders["text"]["rungs"]] == [2, 1]
    assert told["sessions"] == []


async def test_users_see_their_own_sessions_and_the_operator_all(web: WebApp) -> None:
    ann = await Client(web.server, "ann").enter(mode=c.Mode.TEXT)
    await Client(web.server, "bob").enter(mode=c.Mode.VOICE)
    [seen] = (await web.get("/api/energy", user="ann")).json()["sessions"]
    assert ann.live is not None
    assert seen == {
        "session_id": ann.live.id,
        "user": "ann",
        "conversation_id": ann.live.runner.conversation_id,
        "mode": "text",
        "connected": True,
        "text": 2,
        "voice": 3,
        "model": "scripted",
        "node": "one",
    }
    assert {each[0] for each in await levels_of(web, "local")} == {"ann", "bob"}


async def test_a_user_sets_the_energy_of_their_own_sessions_only(web: WebApp) -> None:
    ann = await Client(web.server, "ann").enter()
    await Client(web.server, "bob").enter()
    changed = (await web.put("/api/energy", user="ann", mode="voice", level=1)).json()
    assert [(each["user"], each["voice"]) for each in changed["sessions"]] == [("ann", 1)]
    assert sorted(await levels_of(web, "local")) == [("ann", 1, 2), ("bob", 3, 2)]
    told = ann.last(s.Energy)
    assert (told.level, told.previous, told.reason) == (1, 3, s.EnergyReason.MANUAL)


async def test_the_operator_sets_the_energy_of_all_sessions_or_of_one(web: WebApp) -> None:
    ann = await Client(web.server, "ann").enter()
    await Client(web.server, "bob").enter()
    await web.put("/api/energy", user="local", mode="text", level=1)
    assert ann.live is not None
    await web.put("/api/energy", user="local", mode="text", level=0, session_id=ann.live.id)
    assert sorted(await levels_of(web, "local")) == [("ann", 3, 0), ("bob", 3, 1)]


async def test_at_level_0_there_is_no_model(web: WebApp) -> None:
    await Client(web.server).enter(mode=c.Mode.TEXT)
    [changed] = (await web.put("/api/energy", mode="text", level=0)).json()["sessions"]
    assert changed["model"] is None


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"mode": "voice", "level": 4}, "`level` must be a number from 0 to 3 for voice, not 4."),
        ({"mode": "text", "level": 3}, "`level` must be a number from 0 to 2 for text, not 3."),
        ({"mode": "voice", "level": -1}, "`level` must be a number from 0 to 3 for voice, not -1."),
        ({"mode": "speech", "level": 1}, "`mode` must be one of `text`, `voice`, not 'speech'."),
        ({"mode": "voice", "level": "low"}, "Expected `int`, got `str` - at `$.level`."),
        ({"mode": "voice"}, "Object missing required field `level`."),
        ({"mode": "voice", "lvel": 1}, "Unknown field `lvel`. Did you mean `level`?"),
    ],
)
async def test_a_wrong_request_is_refused_in_one_sentence(web: WebApp, fields: Mapping[str, Any], told: str) -> None:
    await Client(web.server).enter()
    refused = await web.put("/api/energy", **fields)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_request")
    assert refused.json()["error"]["message"] == told
    assert await levels_of(web) == [("ann", 3, 2)]


async def test_a_server_without_voice_has_no_energy_for_it(apps: WebApps) -> None:
    web = apps.open(text=[])
    client = await Client(web.server).enter()
    refused = await web.put("/api/energy", mode="voice", level=1)
    assert refused.json()["error"]["message"] == "This server has no model for voice."
    [session] = (await web.get("/api/energy")).json()["sessions"]
    assert (session["voice"], session["text"]) == (None, 2)
    assert client.last(s.Session).energy is None


async def test_somebody_elses_session_is_not_found(web: WebApp) -> None:
    bob = await Client(web.server, "bob").enter()
    assert bob.live is not None
    assert (await web.put("/api/energy", mode="voice", level=1)).status_code == 404
    assert (await web.put("/api/energy", mode="voice", level=1, session_id=bob.live.id)).status_code == 404
    renewed = await web.post(f"/api/sessions/{bob.live.id}/renew")
    assert (renewed.status_code, renewed.json()["error"]["code"]) == (404, "not_found")
    assert (await web.post("/api/sessions/nobody/renew", user="local")).status_code == 404
    assert await levels_of(web, "bob") == [("bob", 3, 2)]


async def test_a_renewed_session_gets_a_new_model_with_the_same_context(web: WebApp) -> None:
    made: list[ScriptedLive] = []

    def make() -> ScriptedLive:
        made.append(ScriptedLive(profile=PROFILE))
        return made[-1]

    web.server.use(Mode.VOICE, ModelFactory(PROFILE, make))
    client = await Client(web.server).enter(mode=c.Mode.TEXT)
    await client.write("remember the number seven")
    await client.say(c.StartVoice())
    assert client.live is not None
    told = await web.post(f"/api/sessions/{client.live.id}/renew")
    await client.settle(5)
    assert (told.status_code, told.json()["mode"]) == (200, "voice")
    assert len(made) == 2
    assert made[1].context is not None
    assert "remember the number seven" in str(made[1].context.history)


async def test_models_cannot_be_connected_anew_all_the_time(apps: WebApps) -> None:
    quota = Quota({Kind.CONNECTION: Limit(user=Rate(per_s=0.1, burst=1))})
    web = apps.open(text=[], deps={"quota": quota})
    await Client(web.server).enter()
    assert (await web.put("/api/energy", mode="text", level=1)).status_code == 200
    refused = await web.put("/api/energy", mode="text", level=2)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_fast")
    assert refused.headers["retry-after"] == "10"


async def test_a_session_that_does_not_react_is_given_up(web: WebApp, monkeypatch: pytest.MonkeyPatch) -> None:
    client = await Client(web.server).enter()
    assert client.live is not None
    monkeypatch.setattr(client.live.runner, "post", lambda item: None)
    refused = await web.put("/api/energy", mode="text", level=1)
    assert (refused.status_code, refused.json()["error"]["code"]) == (504, "deadline")


async def test_of_several_sessions_those_that_react_are_changed(web: WebApp, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck, _ = await Client(web.server).enter(), await Client(web.server).enter()
    assert stuck.live is not None
    monkeypatch.setattr(stuck.live.runner, "post", lambda item: None)
    changed = (await web.put("/api/energy", mode="text", level=1)).json()
    assert [each["text"] for each in changed["sessions"]] == [1]
    assert changed["unchanged"] == [stuck.live.id]


# Several servers.


async def two_servers(apps: WebApps) -> tuple[WebApp, WebApp]:
    """Two servers on one database, with a stored session of ann on each, and one of bob on the second."""
    one = apps.open(text=["One."] * 2)
    two = apps.open(text=["Two."] * 2, database=one.server.database, owner="two")
    for web, user in ((one, "ann"), (two, "ann"), (two, "bob")):
        await (await Client(web.server, user).enter(mode=c.Mode.TEXT)).write("Hello.")
    return one, two


async def test_the_sessions_of_all_servers_are_listed_and_changed(apps: WebApps) -> None:
    one, two = await two_servers(apps)
    async with looking(one.server, two.server):
        for path, user in (("/api/energy", "local"), ("/api/admin/energy", "admin")):
            told = (await one.get(path, user=user)).json()
            listed = sorted((each["node"], each["user"], each["text"]) for each in told["sessions"])
            assert listed == [("one", "ann", 2), ("two", "ann", 2), ("two", "bob", 2)]
            assert told["unreached"] == []
        changed = (await one.put("/api/energy", user="ann", mode="text", level=1)).json()
        assert sorted((each["node"], each["user"], each["text"]) for each in changed["sessions"]) == [
            ("one", "ann", 1),
            ("two", "ann", 1),
        ]
        assert (changed["unchanged"], changed["unreached"]) == ([], [])
        told = (await two.get("/api/energy", user="local")).json()
        assert sorted((each["user"], each["text"]) for each in told["sessions"]) == [("ann", 1), ("ann", 1), ("bob", 2)]
        # Its sessions are all on the other server.
        assert (await one.put("/api/energy", user="bob", mode="text", level=0)).json()["sessions"][0]["text"] == 0


async def test_a_server_that_does_not_answer_is_named(apps: WebApps) -> None:
    one, two = await two_servers(apps)
    async with looking(one.server):
        began_s = two.deps.clock.monotonic()
        told = (await one.get("/api/energy", user="ann")).json()
        assert two.deps.clock.monotonic() - began_s == pytest.approx(LIST_S, abs=0.1)
        assert ([each["node"] for each in told["sessions"]], told["unreached"]) == (["one"], ["two"])
        changed = (await one.put("/api/energy", user="ann", mode="text", level=1)).json()
        assert ([each["node"] for each in changed["sessions"]], changed["unreached"]) == (["one"], ["two"])
        refused = await one.put("/api/energy", user="bob", mode="text", level=1)
        assert (refused.status_code, refused.json()["error"]["code"]) == (504, "deadline")
        await asyncio.sleep(LEASE_MS / 1000)
        await two.server.hub.drain(1, "The server stops.")
        assert (await one.get("/api/energy", user="ann")).json()["unreached"] == []


async def test_a_session_that_was_taken_over_is_listed_once(apps: WebApps) -> None:
    one, two = await two_servers(apps)
    left = await Client(two.server, "eve").enter()
    await left.write("Hello.")
    # Its connection was cut, which the second server does not notice before it renews the lease.
    await Client(one.server, "eve").enter(resume=left.handle, last_n=left.last_n)
    assert left.live is not None
    assert left.live.id in two.server.hub.sessions
    async with looking(one.server, two.server):
        told = (await two.get("/api/energy", user="eve")).json()["sessions"]
        assert [(each["session_id"], each["node"]) for each in told] == [(left.live.id, "one")]


async def test_the_levels_are_in_the_session_message(web: WebApp) -> None:
    client = await Client(web.server).enter()
    assert client.last(s.Session).energy == s.EnergyLevels(voice=3, text=2)


async def test_metrics_show_energy_cool_downs_and_reconnects(web: WebApp) -> None:
    await Client(web.server).enter()
    await Client(web.server).enter()
    first = next(iter(web.server.hub.sessions))
    await web.put("/api/energy", mode="voice", level=1, session_id=first)
    web.server.ladders[Mode.VOICE].rungs[3].cool_down(40)
    counters = web.server.hub.models.counters
    counters.note_reconnect(ReconnectOutcome.RESUMED)
    counters.note_go_away()
    counters.note_fallback(Mode.VOICE)
    told = (await web.get("/metrics")).text
    values = {
        (sample.name, *(sample.labels[name] for name in LABELS if name in sample.labels)): sample.value
        for family in text_string_to_metric_families(told)
        for sample in family.samples
    }
    assert values["antiphon_energy_level", "voice", "1"] == 1
    assert values["antiphon_energy_level", "voice", "3"] == 1
    assert values["antiphon_energy_level", "text", "2"] == 2
    assert values["antiphon_rung_cooling_seconds", "voice", "3", "best"] == pytest.approx(40, abs=0.1)
    assert values["antiphon_rung_cooling_seconds", "voice", "2", "good"] == 0
    assert values["antiphon_energy_changes_total", "voice", "manual"] == 1
    assert values["antiphon_upstream_reconnects_total", "resumed"] == 1
    assert values["antiphon_upstream_reconnects_total", "failed"] == 0
    assert values["antiphon_upstream_go_aways_total",] == 1
    assert values["antiphon_model_fallbacks_total", "voice"] == 1
