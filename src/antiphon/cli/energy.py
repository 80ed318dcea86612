"""`antiphon energy …` and `antiphon renew`: which models a running server uses, and how that is changed by hand."""

import math
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from antiphon.cli.commands import CacertOption, TokenOption, UrlOption
from antiphon.cli.options import ConfigOption, JsonOption, UsageError, settings_for

if TYPE_CHECKING:
    from antiphon.cli.server_api import ServerApi
    from antiphon.server.energy import EnergyState, LadderState, SessionEnergy

app = typer.Typer(no_args_is_help=True)

ENERGY: Final = "/api/energy"
SHORT_ID_CHARS: Final = 8
"""How much of a session's id is shown. Commands take that much, too."""
MAX_LISTED: Final = 5


class Mode(StrEnum):
    VOICE = "voice"
    TEXT = "text"


SessionOption = Annotated[
    str | None,
    typer.Option("--session", metavar="ID", help="The session, or the beginning of its id. [default: all of yours]"),
]


@app.command()
def show(
    url: UrlOption = None,
    token: TokenOption = None,
    cacert: CacertOption = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Show the models of each level of energy, and the levels of the sessions."""
    api = _api(config, url, token, cacert)
    state = _read(api)
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(state), indent=2).decode())
        return
    for ladder in state.ladders:
        for line in describe_ladder(ladder):
            typer.echo(line)
    for line in describe_sessions(state.sessions, state):
        typer.echo(line)
    if not state.sessions:
        typer.echo("No sessions.")
    for node in state.unreached:
        typer.echo(f"The server {node} does not answer, so its sessions are not listed.")


@app.command("set")
def set_level(
    mode: Annotated[Mode, typer.Argument(help="Which models: voice or text.")],
    level: Annotated[int, typer.Argument(min=0, metavar="LEVEL", help="The level; 0 stops the use of models.")],
    session: SessionOption = None,
    url: UrlOption = None,
    token: TokenOption = None,
    cacert: CacertOption = None,
    config: ConfigOption = None,
) -> None:
    """Set the level of energy of the sessions that run now. A new call or conversation begins with the best again."""
    from antiphon.server.energy import ChangedSessions

    api = _api(config, url, token, cacert)
    state = _read(api)
    body = {"mode": mode, "level": level}
    if session is not None:
        body["session_id"] = find_session(state.sessions, session).session_id
    changed = api.request("PUT", ENERGY, ChangedSessions, body)
    for line in describe_sessions(changed.sessions, state):
        typer.echo(line)
    for id in changed.unchanged:
        typer.echo(f"Session {id[:SHORT_ID_CHARS]} did not react, and may have ended.")
    for node in changed.unreached:
        typer.echo(f"The server {node} does not answer. Check its sessions with `antiphon energy show`.")


def renew(
    session: Annotated[
        str | None,
        typer.Argument(metavar="[SESSION]", help="The session, or the beginning of its id, if there are several."),
    ] = None,
    url: UrlOption = None,
    token: TokenOption = None,
    cacert: CacertOption = None,
    config: ConfigOption = None,
) -> None:
    """Give a session a new model with the same context, because the old one answers badly."""
    from antiphon.server.energy import SessionEnergy

    api = _api(config, url, token, cacert)
    found = find_session(_read(api).sessions, session)
    renewed = api.request("POST", f"/api/sessions/{found.session_id}/renew", SessionEnergy)
    model = renewed.model or "its model"
    typer.echo(f"Session {renewed.session_id[:SHORT_ID_CHARS]} connects to {model} anew, with the same context.")


def find_session(sessions: Sequence["SessionEnergy"], beginning: str | None) -> "SessionEnergy":
    """Finds the session whose id begins like this, or the only one. Raises `UsageError`."""
    found = [each for each in sessions if each.session_id.startswith(beginning or "")]
    if len(found) == 1:
        return found[0]
    if not sessions:
        raise UsageError("there are no sessions. Connect a client first, for example with `antiphon chat`.")
    if not found:
        raise UsageError(f"there is no session {beginning!r}. The sessions are {_list_ids(sessions)}.")
    raise UsageError(f"there are {len(found)} sessions. Name one of them: {_list_ids(found)}.")


def _list_ids(sessions: Sequence["SessionEnergy"]) -> str:
    ids = [each.session_id[:SHORT_ID_CHARS] for each in sessions[:MAX_LISTED]]
    return f"{', '.join(ids)}{', …' if len(sessions) > MAX_LISTED else ''}"


def describe_ladder(ladder: "LadderState") -> Iterator[str]:
    """Describes what a new call or conversation begins with, and then each level."""
    waits = [rung.cooling_s for rung in ladder.rungs if rung.level > ladder.best and rung.cooling_s]
    model = next((rung.model for rung in ladder.rungs if rung.level == ladder.best), "exhausted")
    limited = f" (rate-limited, back in {_seconds(min(waits))})" if waits else ""
    yield f"{ladder.mode.capitalize()}: {ladder.best} of {ladder.max}, {model}{limited}"
    for rung in ladder.rungs:
        notes = ["continues from a summary"] if rung.fallback else []
        if rung.cooling_s:
            notes.append(f"rate-limited, back in {_seconds(rung.cooling_s)}")
        if not rung.reachable:
            notes.append("could not be reached")
        told = f" ({'; '.join(notes)})" if notes else ""
        yield f"  {rung.level}  {rung.model}{told}"


def describe_sessions(sessions: Sequence["SessionEnergy"], state: "EnergyState") -> Iterator[str]:
    """Describes each session; with the server that runs it, if there are several servers."""
    highest = {ladder.mode.value: ladder.max for ladder in state.ladders}
    has_several_nodes = len({each.node for each in state.sessions}.union(state.unreached)) > 1
    for session in sessions:
        levels = {"voice": session.voice, "text": session.text}
        told = [f"{mode} {level} of {highest[mode]}" for mode, level in levels.items() if level is not None]
        model = "no model" if session.model is None else session.model
        node = f" on {session.node}" if has_several_nodes else ""
        client = "" if session.connected else ", not connected"
        yield (
            f"Session {session.session_id[:SHORT_ID_CHARS]} of {session.user}{node}: "
            f"{', '.join(told)}; in {session.mode} with {model}{client}"
        )


def _seconds(seconds: float) -> str:
    whole = math.ceil(seconds)
    return f"{whole} s" if whole < 120 else f"{math.ceil(whole / 60)} min"


def _api(config: ConfigOption, url: str | None, token: str | None, cacert: CacertOption) -> "ServerApi":
    from antiphon.cli.server_api import ServerApi

    return ServerApi.find(settings_for(config), url, token, cacert)


def _read(api: "ServerApi") -> "EnergyState":
    from antiphon.server.energy import EnergyState

    return api.request("GET", ENERGY, EnergyState)
