import pytest

from antiphon.words.tasks import speak_task


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("call my mother", "to call your mother"),
        ("Stand up!", "to Stand up"),
        ("dentist", "“dentist”"),
        ("the oven is on", "“the oven is on”"),
        ("", "“”"),
    ],
)
def test_a_task_follows_to_and_anything_else_is_quoted(message: str, told: str) -> None:
    assert speak_task(message) == told
