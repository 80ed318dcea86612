"""What people say over an answer, judged by what the recogniser makes of it."""

import pytest

from antiphon.models.cascade.remarks import MIN_CLEAR_FRAMES, Remark, is_noise, judge

CLEAR = 20


@pytest.mark.parametrize(
    "text",
    [
        *(
            "Okay.",
            "Ok,",
            "O.K.",
            "Right!",
            "Yeah, yeah.",
            "Mm-hmm.",
            "Uh-huh.",
            "Aha!",
            "I see.",
            "Oh, okay.",
            "Got it!",
        ),
        *("Thanks.", "Thank you very much.", "Yes, of course.", "Ha ha ha ha", "All right, that makes sense."),
    ],
)
def test_words_that_only_show_attention_are_backchannels(text: str) -> None:
    assert judge(text, CLEAR) is Remark.BACKCHANNEL
    assert judge(text, CLEAR, is_reply=True) is Remark.WORDS


@pytest.mark.parametrize(
    "text",
    ["Stop.", "Stop it!", "Be quiet", "Shut up.", "That's enough.", "Okay, stop.", "Please be quiet.", "Stop, stop"],
)
def test_a_stop_is_a_stop_whoever_asks(text: str) -> None:
    assert judge(text, 0) is Remark.STOP
    assert judge(text, CLEAR, is_reply=True) is Remark.STOP


@pytest.mark.parametrize(
    "text", ["", "...", "A high,", "Ahoy!", "Mem,", "Him.", "Ma'am,", "Im ham,", "I have.", "Mamma,,"]
)
def test_what_a_hum_is_recognised_as_is_nothing(text: str) -> None:
    assert judge(text, CLEAR) is Remark.NOTHING


@pytest.mark.parametrize("text", ["Two", "Why,", "If it be,", "Fair."])
def test_a_few_words_without_a_clear_voice_are_nothing(text: str) -> None:
    assert judge(text, MIN_CLEAR_FRAMES - 1) is Remark.NOTHING


@pytest.mark.parametrize(
    "text",
    [
        *(
            "What?",
            "Who?",
            "No.",
            "Hey!",
            "Wait.",
            "Why?",
            "Next.",
            "How?",
            "Thursday.",
            "In London?",
            "Not now.",
            "Help.",
        ),
        *(
            "What time is it?",
            "Stop the timer.",
            "Okay, but what about tomorrow?",
            "No, I meant Thursday.",
            "Cancel that.",
        ),
        *("Thanks, that's not what I meant.", "Right, and in Paris?", "Never mind.", "Is it?", "Нет", "待って"),
    ],
)
def test_anything_else_is_words(text: str) -> None:
    assert judge(text, CLEAR) is Remark.WORDS


def test_while_no_answer_plays_only_a_single_unclear_word_is_a_noise() -> None:
    assert is_noise("Two", 3)
    assert not is_noise("Two", 4)
    assert not is_noise("Number two", 0)
