"""Fault scripts: what they may say, and how mistakes are reported."""

import pytest

from antiphon.sim import actions
from antiphon.sim.script import Fault, Occasion, ScriptError, Trigger, parse_faults, parse_script
from antiphon.sim.vendors.gemini import GeminiLive
from antiphon.sim.vendors.openai import OpenAIRealtime

GEMINI, OPENAI = GeminiLive.vocabulary, OpenAIRealtime.vocabulary


def test_a_script_becomes_faults() -> None:
    script = """
faults:
  - when: {audio_chunk: 3}
    do: {close: {code: 1011, reason: Quota.}}
    connection: 2
    skip: 1
    times: always
  - when: {connect: 4}
    do: [{go_away: {seconds_left: 2.5, then: silence}}, no_pongs]
  - {when: resumed, do: duplicate_tool_call}
"""
    assert parse_script(script, GEMINI) == [
        Fault(
            Trigger(Occasion.AUDIO_CHUNK, 3),
            (actions.Close(code=1011, reason="Quota."),),
            connection=2,
            skip=1,
            times=None,
        ),
        Fault(
            Trigger(Occasion.CONNECT),
            (actions.GoAway(seconds_left=2.5, then=actions.Then.SILENCE), actions.NoPongs()),
            connection=4,
        ),
        Fault(Trigger(Occasion.RESUMED), (actions.DuplicateToolCall(),)),
    ]


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("faults: [", "line 1: this is not YAML"),
        ("fault: []", 'one key, "faults"; found: fault'),
        ("- 1", 'one key, "faults"; found: list'),
        ("", 'one key, "faults"'),
        ("faults: 3", "line 1, faults: this must be a list"),
        ("faults:\n  - 3", 'line 2, faults[0]: a fault is a mapping with "when" and "do"'),
        ("faults:\n  - do: close", 'line 2, faults[0]: "when" is missing'),
        ("faults:\n  - when: connect", '"do" is missing'),
        ("faults:\n  - when: connect\n    do: close\n    time: 3", 'line 4, faults[0].time: "time" is not a known key'),
        ("faults: [{when: conect, do: close}]", 'Did you mean "connect"?'),
        ("faults: [{when: {}, do: close}]", "a trigger is a name"),
        ("faults: [{when: {seconds: soon}, do: close}]", '"seconds" needs a number'),
        ("faults: [{when: {audio_chunk: 0}, do: close}]", '"audio_chunk" needs a whole number from 1'),
        ("faults: [{when: {audio_chunk: true}, do: close}]", '"audio_chunk" needs a whole number from 1'),
        ("faults: [{when: {connect: zero}, do: close}]", "this must be a whole number from 1"),
        ("faults: [{when: server_message, do: close}]", '"server_message" needs the type of a message'),
        ("faults: [{when: {resume: 3}, do: close}]", '"resume" takes no value'),
        ("faults: [{when: now, do: close}]", '"now" works only at the control port'),
        ("faults: [{when: connect, do: clse}]", 'Did you mean "close"?'),
        ("faults: [{when: connect, do: []}]", "the list has no action"),
        ("faults: [{when: connect, do: {close: {}, reset: {}}}]", "an action is a name"),
        (
            "faults:\n  - when: connect\n    do:\n      close:\n        code: many",
            "line 5, faults[0].do.close.code: expected `int`, got `str`",
        ),
        ("faults: [{when: connect, do: {close: {code: 5}}}]", "`int` >= 1000"),
        ("faults: [{when: connect, do: {close: {cod: 1000}}}]", "unknown field `cod`"),
        ("faults: [{when: connect, do: {close: 1000}}]", "expected `object`"),
        ("faults: [{when: connect, do: {slow_pongs: {}}}]", "required field `seconds`"),
        ("faults: [{when: connect, do: {go_away: {then: sleep}}}]", "invalid enum value 'sleep'"),
        ("faults: [{when: {seconds: 1}, do: refuse}]", '"refuse" works only with the trigger "connect"'),
        ("faults: [{when: connect, do: reject_handle}]", '"reject_handle" works only with the trigger "resume"'),
        ("faults: [{when: connect, do: close, times: 0}]", 'a whole number from 1 or "always"'),
        (f"faults: [{{when: connect, do: {{close: {{reason: {'x' * 124}}}}}}}]", "at most 123 bytes"),
    ],
)
def test_a_mistake_is_reported_with_its_place(script: str, told: str) -> None:
    with pytest.raises(ScriptError) as error:
        parse_script(script, GEMINI, "faults.yaml")
    assert told in str(error.value)
    assert str(error.value).startswith("faults.yaml")


def test_a_provider_without_resumption_has_no_trigger_for_it() -> None:
    with pytest.raises(ScriptError, match='OpenAI Realtime has no trigger "resumed"'):
        parse_script("faults: [{when: resumed, do: greet}]", OPENAI)
    with pytest.raises(ScriptError, match='"go_away" is not a known action'):
        parse_script("faults: [{when: connect, do: go_away}]", OPENAI)


def test_the_control_port_takes_one_fault_or_a_list_or_a_script() -> None:
    fault = {"when": "now", "do": "close"}
    expected = [Fault(Trigger(Occasion.NOW), (actions.Close(),))]
    assert parse_faults(fault, GEMINI) == parse_faults([fault], GEMINI) == expected
    assert parse_faults({"faults": [fault]}, GEMINI) == expected
    with pytest.raises(ScriptError, match=r"\[0\].do: .clse. is not a known action"):
        parse_faults({"when": "now", "do": "clse"}, GEMINI)


def test_a_script_of_absurd_size_is_refused() -> None:
    with pytest.raises(ScriptError, match="longer than"):
        parse_script("#" * 1_000_001, GEMINI)
    with pytest.raises(ScriptError, match="at most 1000"):
        parse_faults([{"when": "connect", "do": "close"}] * 1_001, GEMINI)
    with pytest.raises(ScriptError, match="not YAML"):
        parse_script("[" * 5_000, GEMINI)
