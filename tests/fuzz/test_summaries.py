"""Whatever was said, a summary is made of it, within its limits and in little time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.continuity.summarizer import tell_conversation
from antiphon.continuity.summary import MAX_CHARS, extract
from antiphon.continuity.tokens import count_message, estimate_tokens, most_tokens
from antiphon.models.builtin.recall import Memory, Recall
from antiphon.models.builtin.understanding import words_of
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage
from antiphon.words.reported import report, shorten

SAID = "what is are do does it i you my the how time please can tell me whether in Tokyo 15 % “ ” ? . ! , ' ’ … [ ] ( )"
WORDS = st.sampled_from(SAID.split())
TEXTS = st.one_of(
    st.text(st.characters(codec=None), max_size=300),
    st.lists(WORDS, max_size=30).map(" ".join),
)
JSON = st.recursive(st.none() | st.booleans() | TEXTS, lambda inner: st.dictionaries(TEXTS, inner, max_size=3))
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    TEXTS.map(UserMessage),
    TEXTS.map(AssistantMessage),
    st.builds(lambda text, args: AssistantMessage(text, (CallMade("c1", "tool", args),)), TEXTS, JSON),
    st.builds(
        lambda content, spoken, ok: ToolMessage("c1", "tool", content, spoken, ok),
        JSON,
        st.none() | TEXTS,
        st.booleans(),
    ),
)
CONVERSATIONS = st.lists(MESSAGES, max_size=12)

HOSTILE = ("(", "[", "<", "*", ",", " ", ", ", "?", "you ", "you about ", "please ", "is it ", "what ", ".")
UNUSUAL = ("\u200d", "\ud800", "😀", "天")


@given(CONVERSATIONS)
def test_every_conversation_has_a_short_summary(messages: list[Message]) -> None:
    summary = extract(messages)
    assert len(summary) <= MAX_CHARS
    assert summary.encode().decode() == summary
    tell_conversation(messages).encode()


@given(CONVERSATIONS, TEXTS, st.sampled_from(Recall), st.sampled_from(Mode))
def test_every_conversation_can_be_asked_about(
    messages: list[Message], summary: str, recall: Recall, mode: Mode
) -> None:
    assert Memory(messages, summary, mode, words_of=words_of).answer(recall)


@given(TEXTS, st.integers(10, 200))
def test_a_report_is_as_long_as_allowed(text: str, limit: int) -> None:
    told = report(text, limit)
    assert told is None or len(told.clause) <= limit + 2, "two for the quotation marks"
    assert len(shorten(text, limit)) <= limit


@given(MESSAGES)
def test_the_quick_bound_is_never_exceeded(message: Message) -> None:
    assert count_message(message) <= most_tokens(message)
    text = getattr(message, "text", "")
    assert estimate_tokens(text) <= len(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("piece", HOSTILE + UNUSUAL)
def test_a_long_text_takes_no_long_time(piece: str) -> None:
    # With an expression that is quadratic in the text, this would take minutes.
    text = piece * (500_000 // len(piece))
    messages: list[Message] = [UserMessage(text), AssistantMessage(text), ToolMessage("c1", "tool", {}, text)] * 3
    assert len(extract(messages)) <= MAX_CHARS
    tell_conversation(messages)
    assert Memory(messages, text, Mode.TEXT, words_of=words_of).answer(Recall.REQUESTS)
