"""How `antiphon energy` shows the sessions of one server, and of several."""

from antiphon.cli.energy import describe_sessions
from antiphon.server.energy import EnergyState, LadderState, SessionEnergy
from antiphon.tools.spec import Mode

LADDERS = (LadderState(Mode.TEXT, 2, 2, ()),)


def session(id: str, node: str) -> SessionEnergy:
    return SessionEnergy(
        session_id=id,
        user="ann",
        conversation_id="c1",
        mode=Mode.TEXT,
        connected=True,
        text=1,
        voice=None,
        model="builtin",
        node=node,
    )


def shown(*nodes: str, unreached: tuple[str, ...] = ()) -> list[str]:
    sessions = tuple(session(f"s{number}", node) for number, node in enumerate(nodes))
    return list(describe_sessions(sessions, EnergyState(LADDERS, sessions, unreached)))


def test_the_node_of_a_session_is_shown_if_there_are_several() -> None:
    assert shown("one", "one") == [f"Session s{number} of ann: text 1 of 2; in text with builtin" for number in (0, 1)]
    assert shown("one", "two") == [
        "Session s0 of ann on one: text 1 of 2; in text with builtin",
        "Session s1 of ann on two: text 1 of 2; in text with builtin",
    ]
    assert shown("one", unreached=("two",)) == ["Session s0 of ann on one: text 1 of 2; in text with builtin"]
