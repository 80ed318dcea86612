"""Thoughts are taken out of a message, however it is cut into pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.models.providers.spoken_text import TAGS, SpokenText

PARTS = [
    *TAGS,
    *TAGS.values(),
    "```",
    "`",
    "<",
    "<thi",
    "</th",
    "\n",
    "\r\n",
    " ",
    "Hm.",
    "Hello",
    "é",
    "[TH",
    "think>",
]
MESSAGES = st.lists(st.sampled_from(PARTS), max_size=30).map("".join)


def spoken(*pieces: str) -> str:
    text = SpokenText()
    return "".join(text.push(piece) for piece in pieces) + text.finish()


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("<think>Hm.</think>Hello.", "Hello."),
        ("\n<think>\nHm.\n\nHm.\n</think>\n\nHello.\n", "\nHello.\n"),
        ("<think>\n\n</think>\n\nHello.", "Hello."),
        ("<think>One.</think>\n<think>Two.</think>\nHello.", "Hello."),
        ("[THINK]Hm.[/THINK]Bonjour.", "Bonjour."),
        ("<thinking>Hm. </think> Hm.</thinking>Hello.", "Hello."),
        ("Hello.\n<think>Hm.</think>\nAnd goodbye.", "Hello.\nAnd goodbye."),
        ("<think>It never ends", ""),
        ("<think>I should call it.\n<tool_call>{}</tool_call>", "<tool_call>{}</tool_call>"),
        ("<think>A <tool_call> is\n<tool_call>{}</tool_call>", "<tool_call>{}</tool_call>"),
        ("<think>A <tool_call> it is.</think>Hello.", "Hello."),
        ("Hello.\n</think>\n\nHello again.", "Hello.\nHello again."),
    ],
)
def test_thoughts_are_not_spoken(message: str, told: str) -> None:
    assert spoken(message) == told
    assert spoken(*message) == told


@pytest.mark.parametrize(
    "message",
    [
        "Qwen writes <think> before its thoughts and </think> after them.",
        "`<think>` is a tag.",
        "For example:\n```\n<think>\nHm.\n</think>\n```\nThat is all.",
        "<thin ice",
        "<",
        "a\n<",
        "2 <3\n[T]\n``",
        "",
        " \n ",
    ],
)
def test_text_that_only_mentions_thoughts_is_spoken(message: str) -> None:
    assert spoken(message) == message
    assert spoken(*message) == message


def test_a_thought_whose_beginning_is_missing_is_noticed() -> None:
    text = SpokenText()
    text.push("Hm.\n</think>\n\nHello.")
    assert text.has_unmarked_thoughts
    text = SpokenText()
    text.push("<think>Hm.\n</think>\n\nHello.")
    assert not text.has_unmarked_thoughts


@pytest.mark.parametrize("message", ["Hello.", "a < b", "I <think> so", "`a`"])
def test_ordinary_text_is_passed_on_at_once(message: str) -> None:
    text, waited = SpokenText(), ""
    for char in message:
        waited += char
        waited = waited.removeprefix(text.push(char))
        assert len(waited) <= 1


@given(MESSAGES, st.data())
def test_pieces_make_no_difference(message: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(message)), max_size=8)))
    pieces = [message[start:end] for start, end in zip([0, *cuts], [*cuts, len(message)], strict=True)]
    assert spoken(*pieces) == spoken(message) == spoken(*message)


@given(st.text(st.characters(exclude_characters="<[", exclude_categories=["Cs"])))
def test_text_without_tags_is_not_changed(message: str) -> None:
    assert spoken(*message) == message
