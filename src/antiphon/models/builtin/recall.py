"""Answers questions about the conversation itself: what was asked, what was said, and what it was about."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, Message, UserMessage
from antiphon.words.reported import Report, end_sentence, is_question, quote, report, shorten, split_sentences, tell

NOTHING_ASKED: Final = "You haven't asked me anything yet."
NOTHING_SAID: Final = "I haven't said anything yet."
NOTHING_DISCUSSED: Final = "We haven't talked about anything yet."
REMEMBERED: Final = {Mode.TEXT: 5, Mode.VOICE: 3}
"""How many requests are told. Listening to five would take too long."""
MAX_QUESTION_CHARS: Final = 120
"""The longest question about the conversation."""
MAX_ANSWER_CHARS: Final = 200


class Recall(StrEnum):
    """What the user wants to know about the conversation."""

    LAST_REQUEST = "last_request"
    FIRST_REQUEST = "first_request"
    REQUESTS = "requests"
    TOPICS = "topics"
    LAST_ANSWER = "last_answer"
    REPETITION = "repetition"
    """The last answer again, word for word."""


_BEFORE: Final = (
    r"(?:(?:sorry|excuse me|wait|okay|ok|so|and|please|hey|well|now|then) )*"
    r"(?:(?:do|can) you (?:still )?(?:remember|recall|know|tell me) |(?:can|could|would|will) you (?:please )?|"
    r"(?:remind|tell) me (?:of |again )?|i (?:have forgotten|forgot|cannot remember|do not remember) )?"
    r"(?:please )?(?:(?:remind|tell) me (?:of |again )?)?"
)
_AFTER: Final = r"(?: (?:please|again|then|exactly|thanks|thank you))*"
_YOU: Final = r"(?: (?:you|of you|from you|to you|to know|for|about|to do))*"
_WHEN: Final = (
    r"(?: (?:before|earlier|previously|so far|today|until now|up to now|in this conversation|in this call|already|"
    r"before that|before this|last time))*"
)
_JUST: Final = r"(?: (?:just now|a moment ago|right now|just before|last|a second ago|a minute ago))"
_ASK: Final = r"(?:ask|asked|say|said|tell|told|request|requested|want|wanted|asking|saying)"
_TALK: Final = (
    r"(?:talk|talked|talking|speak|spoke|spoken|speaking|discuss|discussed|discussing|chat|chatted|chatting|"
    r"been talking|been speaking|been discussing)"
)
_ANSWER: Final = r"(?:answer|reply|response|sentence|message|words)"
_THAT: Final = (
    rf"(?:that|it|this|yourself|your (?:last )?{_ANSWER}|the (?:last )?{_ANSWER}|what you (?:just )?said|"
    r"(?:the )?last (?:thing|part)(?: you said)?)"
)
_TALKED: Final = r"(?:conversation|call|chat|discussion|talk)"

_PATTERNS: Final = tuple(
    (recall, re.compile(_BEFORE + f"(?:{pattern})" + _AFTER))
    for recall, pattern in (
        (
            Recall.LAST_REQUEST,
            rf"what (?:did i|have i|was i|i) (?:just|only just|last) {_ASK}{_YOU}{_JUST}?|"
            rf"what (?:did i|have i|was i|i) {_ASK}{_YOU}{_JUST}|"
            r"what (?:was|is) (?:my|the) (?:last|previous|latest|most recent) (?:question|request|message|command)",
        ),
        (
            Recall.FIRST_REQUEST,
            rf"what (?:did i|have i|i) (?:first )?{_ASK}{_YOU} "
            r"(?:first|at first|at the (?:beginning|start)|in the beginning)|"
            rf"what did i first {_ASK}{_YOU}|"
            r"what was (?:my|the) first (?:question|request|message|thing (?:that )?i asked(?: you)?)",
        ),
        (
            Recall.REQUESTS,
            rf"what (?:(?:all|else) )?(?:did i|have i|was i|i|i have) {_ASK}{_YOU}{_WHEN}|"
            rf"what (?:were|are) my (?:last |previous |earlier |latest )?(?:questions|requests|messages){_WHEN}|"
            r"(?:list|repeat) my (?:last |previous |earlier )?(?:questions|requests)|"
            rf"what was my (?:question|request){_WHEN}",
        ),
        (
            Recall.TOPICS,
            rf"what (?:did we|have we|were we|are we|we|we were|we have) {_TALK}(?: about)?{_WHEN}{_JUST}?|"
            rf"what was (?:this|our|the) {_TALKED} about|"
            r"where were we|where (?:did we|we) (?:stop|stopped|leave off|left off)|"
            rf"(?:summarize|summarise|recap|sum up) (?:this|our|the) {_TALKED}{_WHEN}|"
            rf"(?:summarize|summarise|recap|sum up) what (?:we|was|we have) (?:said|discussed|talked about){_WHEN}|"
            r"(?:give me |i would like |make )?a (?:short |quick |brief )?(?:summary|recap)"
            rf"(?: of (?:this|our|the) {_TALKED})?{_WHEN}|"
            rf"what (?:has been|was) (?:said|discussed|talked about){_WHEN}|"
            rf"what do you (?:remember|recall|know) (?:of|about|from) (?:this|our|the) {_TALKED}{_WHEN}",
        ),
        (
            Recall.LAST_ANSWER,
            r"what (?:did you|have you|you|were you)(?: just| last| only just)? "
            r"(?:say|said|saying|tell|told|telling|answer|answered|reply|replied|do|done|doing)"
            rf"(?: me| to me| to that| to my question)?{_WHEN}{_JUST}?|"
            rf"what (?:was|is) (?:your|the) (?:last |previous |latest )?{_ANSWER}{_WHEN}|"
            r"what was that|"
            r"i (?:did not|could not) (?:quite )?(?:catch|hear|get|understand)"
            r"(?: (?:that|you|it|what you (?:just )?said))?",
        ),
        (
            Recall.REPETITION,
            rf"(?:repeat|say)(?: {_THAT})?(?: (?:again|once more|once again|one more time|for me))+|"
            rf"repeat(?: {_THAT})?|"
            r"(?:come |say )again|once (?:more|again)|one more time|pardon(?: me)?|i beg your pardon|"
            r"what(?: (?:again|now))?|huh|say what|excuse me what",
        ),
    )
)


def find_recall(words: str) -> Recall | None:
    """Returns what is asked about the conversation. `words` is lower case, without punctuation or contractions."""
    if len(words) > MAX_QUESTION_CHARS:
        return None
    return next((recall for recall, pattern in _PATTERNS if pattern.fullmatch(words)), None)


@dataclass(frozen=True, slots=True)
class _Exchange:
    asked: Report
    answer: str
    """Empty if there is none."""

    def __str__(self) -> str:
        end = f"and {_report_answer(self.answer)}" if self.answer else "and I haven't answered that yet."
        return end_sentence(f"{self.asked}, {end}")


class Memory:
    """What the assistant can tell about a conversation."""

    def __init__(
        self, messages: Sequence[Message], summary: str, mode: Mode, *, words_of: Callable[[str], str]
    ) -> None:
        """`messages` are those before the question, `summary` tells what came before them, and `words_of` prepares a
        text for `find_recall`."""
        self._messages = messages
        self._summary = summary.strip()
        self._most = REMEMBERED[mode]
        self._words_of = words_of

    def answer(self, recall: Recall) -> str:
        match recall:
            case Recall.REPETITION:
                return self._last_answer() or NOTHING_SAID
            case Recall.LAST_ANSWER:
                last = self._last_answer()
                return end_sentence(_report_answer(last)) if last else NOTHING_SAID
            case Recall.LAST_REQUEST:
                exchanges = self._exchanges()
                return str(exchanges[-1]) if exchanges else self._summary or NOTHING_ASKED
            case Recall.FIRST_REQUEST:
                exchanges = self._exchanges()
                return self._summary or (str(exchanges[0]) if exchanges else NOTHING_ASKED)
            case Recall.REQUESTS:
                return self._tell_requests() or self._summary or NOTHING_ASKED
            case Recall.TOPICS:
                reports = [exchange.asked for exchange in self._exchanges()[-self._most :]]
                return " ".join([*filter(None, [self._summary]), *tell(reports)]) or NOTHING_DISCUSSED

    def _tell_requests(self) -> str:
        """Tells the newest request with its answer, and then those before it."""
        exchanges = self._exchanges()[-self._most :]
        if not exchanges:
            return ""
        *earlier, last = exchanges
        sentences = [str(last)]
        if told := tell([exchange.asked for exchange in earlier]):
            first, *rest = told
            sentences += [f"Before that, {first[:1].lower()}{first[1:]}", *rest]
        if self._summary:
            sentences.append(f"And earlier: {self._summary}")
        return " ".join(sentences)

    def _exchanges(self) -> list[_Exchange]:
        """Returns what the user asked, with the answers. Questions about the conversation are not part of it."""
        found: list[_Exchange] = []
        asked: Report | None = None
        answer: list[str] = []
        for message in [*self._messages, UserMessage("")]:
            match message:
                case UserMessage(text=text):
                    if asked is not None:
                        found.append(_Exchange(asked, " ".join(answer)))
                    asked, answer = None if _is_note(text) or self._is_question(text) else report(text), []
                case AssistantMessage(text=text) if text.strip():
                    answer.append(text.strip())
        return found

    def _is_question(self, text: str) -> bool:
        """Whether the text is a question about the conversation, too."""
        return len(text) <= MAX_QUESTION_CHARS and find_recall(self._words_of(text)) is not None

    def _last_answer(self) -> str:
        return next((words for message in reversed(self._messages) if (words := _answer_in(message))), "")


_UNQUOTED: Final = re.compile(
    r"(?:(?:it|that|there|here)(?:['’]s)?|you(?:['’]re)?|i(?:['’](?:m|ve|ll))?|this|the|today|your|in|he|she|"
    r"they|we)\s",
    re.IGNORECASE,
)
"""How an answer begins that can follow "I said" without quotation marks."""


def _report_answer(answer: str) -> str:
    """Tells an answer: "It's noon." becomes "I said it's noon.\""""
    text = shorten(answer, MAX_ANSWER_CHARS)
    if len(split_sentences(text)) == 1:
        if is_question(text):
            return f"I asked {quote(text, MAX_ANSWER_CHARS)}"
        if _UNQUOTED.match(text) is not None:
            words = text if re.match(r"I\b", text) else text[:1].lower() + text[1:]
            return f"I said {words}"
    return f"I said: {quote(text, MAX_ANSWER_CHARS)}"


def _is_note(text: str) -> bool:
    """Whether a program wrote the message, and not the user."""
    text = text.strip()
    return text.startswith("[") and text.endswith("]")


def _answer_in(message: Message) -> str:
    return message.text.strip() if isinstance(message, AssistantMessage) else ""
