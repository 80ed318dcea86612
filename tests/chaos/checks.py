"""What must hold after a conversation, whatever has happened in it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from antiphon.protocol import client_messages as c
from antiphon.protocol import server_messages as s
from antiphon.storage.conversations import StoredTurn
from tests.chaos.assistant import BOOK, ORDER, own_words
from tests.chaos.person import Person
from tests.chaos.plan import Fault
from tests.chaos.sound import words_of
from tests.chaos.text_faults import TextFault, TextFaultKind
from tests.chaos.world import CountedTool

if TYPE_CHECKING:
    from tests.chaos.conversation import Story, TurnRecord

GREETING: Final = ("what can i do for you", "how can i help you")
MAX_REPEATED: Final = 1
"""How many words of an answer may be heard again: one that was cut in two."""


def check_transcript(story: "Story", person: Person, stored: Sequence[StoredTurn]) -> None:
    """Every acknowledged turn is stored, once, in order, and has an answer or an error that the user was told."""
    kept = [turn.text for turn in stored if turn.role == "user" and turn.text]
    told = [each for each in person.received if isinstance(each, s.Transcript) and each.is_final]
    told.sort(key=lambda each: each.turn or 0)
    if len({each.turn for each in told}) != len(told):
        story.problems.append(f"doubled: two transcripts of one turn in {[(each.turn, each.text) for each in told]}")
    left = iter(kept)
    for each in told:
        # The texts must be found one after the other.
        if not any(text == each.text for text in left):
            story.problems.append(f"lost: {each.text!r} is not in its place in the transcript {kept}")
            break
    for turn in story.turns:
        if turn.is_acknowledged and kept.count(turn.text) != 1:
            story.problems.append(f"doubled: {turn.text!r} is in the transcript {kept.count(turn.text)} times")
        if turn.is_acknowledged and turn.outcome in ("", "unheard", "silent"):
            story.problems.append(f"unanswered: {turn.text!r}")


def check_tools(story: "Story", tools: Mapping[str, CountedTool]) -> None:
    for name in (BOOK, ORDER):
        for topic, runs in tools[name].runs.items():
            if runs > 1:
                story.problems.append(f"ran_twice: {name} ran {runs} times for {topic}")


def check_speech(story: "Story", person: Person) -> None:
    """No words of an answer are heard twice."""
    heard = Counter(word for turn in person.heard for word in person.words(turn))
    for turn in story.turns:
        again = [word for word in own_words(turn.topic) if heard[word] > 1]
        if len(again) > MAX_REPEATED:
            story.problems.append(f"said_twice: {again}")


def check_greeting(story: "Story", person: Person) -> None:
    """A greeting comes at most once, and before anything else was said."""
    said = [" ".join(words_of(each.text)) for each in person.received if isinstance(each, s.Response)]
    places = [place for place, text in enumerate(said) if any(words in text for words in GREETING)]
    if [place for place in places if place > 0]:
        story.problems.append(f"greeted_again: {[said[place] for place in places]} as answers {places} of {len(said)}")


def check_energy(story: "Story", person: Person) -> None:
    """A rate limit costs exactly one level."""
    for each in person.received:
        is_limit = isinstance(each, s.Energy) and each.reason is s.EnergyReason.RATE_LIMIT_EXCEEDED
        if isinstance(each, s.Energy) and is_limit and each.level != max(0, each.previous - 1):
            story.problems.append(f"energy: {each.mode} went from {each.previous} to {each.level}")


def check_rate_limit(story: "Story", turn: "TurnRecord", faults: Sequence[Fault]) -> None:
    """If the text model is limited, another one answers, and the user is told of no error."""
    is_limit = [isinstance(each, TextFault) and each.kind is TextFaultKind.RATE_LIMIT for each in faults]
    if faults and all(is_limit) and turn.outcome.startswith("error"):
        story.problems.append(f"limited: {turn.text!r} ended as {turn.outcome!r} after a rate limit")


def check_recall(story: "Story", answer: str, mode: c.Mode) -> None:
    """The model knows what the last turns were about."""
    known = set(words_of(answer))
    lately = [turn.topic for turn in story.turns if turn.is_acknowledged][-2:]
    missing = [topic for topic in lately if topic not in known]
    if missing:
        story.problems.append(f"forgotten: in {mode}, the model does not know of {missing}")


def check_results(story: "Story", provider: str, log: Sequence[Mapping[str, Any]]) -> None:
    """The result of a call is sent once. Only a call that came twice may be answered twice."""
    called: Counter[tuple[int, str]] = Counter()
    answered: Counter[tuple[int, str]] = Counter()
    for entry in log:
        message = entry.get("message")
        # Only a session that can be resumed outlives its connection. Others are told of earlier calls anew.
        session = 0 if provider == "gemini" else entry["connection"]
        if isinstance(message, dict):
            called.update((session, each) for each in _calls(message))
            answered.update((session, each) for each in _results(message))
    for call, count in answered.items():
        if count > max(1, called[call]):
            story.problems.append(f"result_twice: {provider} got {count} results of {called[call]} calls")


def _calls(message: Mapping[str, Any]) -> list[str]:
    item = message.get("item") or {}
    is_made = message.get("type") in ("response.output_item.done", "conversation.item.create")
    if is_made and item.get("type") == "function_call":
        return [str(item.get("call_id"))]
    return [str(call.get("id")) for call in (message.get("toolCall") or {}).get("functionCalls") or ()]


def _results(message: Mapping[str, Any]) -> list[str]:
    item = message.get("item") or {}
    if message.get("type") == "conversation.item.create" and item.get("type") == "function_call_output":
        return [str(item.get("call_id"))]
    response = message.get("tool_response") or message.get("toolResponse") or {}
    return [str(each.get("id")) for each in response.get("functionResponses") or ()]
