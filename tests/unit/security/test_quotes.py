from typing import Any

import pytest

from antiphon.security.quotes import MAX_QUOTE_CHARS, add_quote, quote


@pytest.mark.parametrize(
    "body",
    [
        "no",
        {"message": "no"},
        {"detail": "no"},
        {"error": "no"},
        {"error": {"message": "no", "code": 400}},
        [{"error": {"message": "no"}}],
    ],
)
def test_the_message_is_found_wherever_servers_put_it(body: Any) -> None:
    assert quote(body) == "no"


@pytest.mark.parametrize("body", [None, 5, [], {}, {"message": 5}, {"error": None}, " \n", " <html>no</html>"])
def test_a_body_without_a_readable_message_is_not_quoted(body: Any) -> None:
    assert quote(body) == ""


def test_a_key_is_redacted_before_truncation() -> None:
    padding = "x" * (MAX_QUOTE_CHARS - 5)
    assert quote(f"{padding} s3cret", "s3cret") == f"{padding} …"


def test_a_long_message_is_truncated_to_one_line() -> None:
    said = quote("no\n" * 1_000)
    assert said.startswith("no no ")
    assert said.endswith("…")
    assert len(said) == MAX_QUOTE_CHARS + 1


@pytest.mark.parametrize(("said", "sentence"), [("too big", "It refused: too big"), ("", "It refused.")])
def test_a_sentence_ends_with_what_was_said(said: str, sentence: str) -> None:
    assert add_quote("It refused", said) == sentence
