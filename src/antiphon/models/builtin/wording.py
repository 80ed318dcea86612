"""Makes of what people say, or of what a recogniser wrote, the sentences that they meant: without hesitations, slips of
the tongue, courtesies and stories around the request, and with words that were split or misheard put right.

It only proposes. The first proposal that is a request in the sentences of the tools counts.
"""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final

from antiphon.models.builtin.fuzzy import SMALL_WORDS
from antiphon.models.builtin.stories import restated, split_story, with_antecedent, without_reason
from antiphon.words.dates import parse_date, parse_when
from antiphon.words.days import WEEKDAYS
from antiphon.words.devices import write_out
from antiphon.words.numbers import parse_number
from antiphon.words.readers import Reader, find, is_whole
from antiphon.words.schedules import parse_duration
from antiphon.words.zones import find_place

MAX_CHARS: Final = 300
"""A longer text is taken as it is."""
MAX_FORMS: Final = 10
"""Looking each of them up takes up to a few milliseconds."""
MAX_SLIP_WORDS: Final = 5
_ANY_MOMENT: Final = datetime(2026, 3, 4, 10, tzinfo=UTC)

_QUOTED: Final = re.compile(r'("[^"]*"|“[^”]*”)')
_SPLIT_WORDS: Final = (
    (re.compile(r"\btime er\b", re.IGNORECASE), "timer"),
    (re.compile(r"\ba larm\b", re.IGNORECASE), "an alarm"),
    (re.compile(r"\bweek end\b", re.IGNORECASE), "weekend"),
    (re.compile(r"\bto morrow\b", re.IGNORECASE), "tomorrow"),
    (re.compile(r"\bre mind(er)?\b", re.IGNORECASE), r"remind\1"),
    (re.compile(r"\bcalender\b", re.IGNORECASE), "calendar"),
    (re.compile(r"\bwhat['’]ll\b", re.IGNORECASE), "what will"),
)
"""What no one writes on purpose."""
_HESITATION: Final = re.compile(
    r"\s*,?\s*\b(?:u+h*m+|u+h+|e+r+m*|h+m+|m{2,}|ehm+)\b[,.…]*(?=\s|\Z|[?!])|…|\.{3,}", re.IGNORECASE
)
_FILLER: Final = (
    r"you know|like|let me (?:see|think)(?: about (?:it|that))?|let['’]?s see|how do i say(?: this)?|i guess|"
    r"basically|kind of|sort of|what['’]?s it called"
)
_SET_OFF: Final = re.compile(rf"(?:(?<=\A)|,)\s*(?:{_FILLER}|well|so)\s*,", re.IGNORECASE)
_OPENING: Final = re.compile(
    r"\A\s*(?:(?:let me (?:see|think)(?: about (?:it|that))?|let['’]?s see|you know what|so yeah|yeah so|i guess|"
    r"okay so|ok so|right so)[\s,.…]+|well,\s+)+(?=\S)",
    re.IGNORECASE,
)
_STUTTER: Final = re.compile(
    r"\b(the|an?|to|for|in|on|at|of|is|what|what['’]s|how|set|my|me|i|can|could|you|and|it|add|remind|tell|do|"
    r"are|was|with)"
    r"(?:\s*,?\s+\1\b)+(?!\s+(?:minutes?|hours?|seconds?|plus|minus|times)\b)",
    re.IGNORECASE,
)


_SIGN: Final = re.compile(r"\A\s*([-+×*÷/])\s*(?=\d)")
_SIGNS: Final = {"-": "minus ", "+": "plus ", "×": "times ", "*": "times ", "÷": "divided by ", "/": "divided by "}


def clean(text: str) -> str:
    """Removes what means nothing: hesitations and repeated small words. What is in quotation marks stays as it is."""
    text = text if _QUOTED.search(text) else write_out(text)
    # Recognisers write "+10" for "plus ten".
    text = _SIGN.sub(lambda sign: _SIGNS[sign[1]], text)
    if len(text) > MAX_CHARS or _NEEDS_CLEANING.search(text) is None:
        return text.strip()
    parts = _QUOTED.split(text)
    cleaned = "".join(part if at % 2 else _clean(part) for at, part in enumerate(parts))
    return re.sub(r"\s+([,.!?])", r"\1", re.sub(r"\s{2,}", " ", cleaned)).strip(" ,") or text.strip()


_NEEDS_CLEANING: Final = re.compile(
    "|".join(
        [
            *(pattern.pattern for pattern, _ in _SPLIT_WORDS),
            *(pattern.pattern for pattern in (_HESITATION, _SET_OFF, _OPENING)),
            _STUTTER.pattern.replace(
                r"\1", r"(?:the|an?|to|for|in|on|at|of|is|what|how|set|my|me|i|can|you|and|it|add|remind|tell|do)"
            ),
        ]
    ),
    re.IGNORECASE,
)


def _clean(text: str) -> str:
    for pattern, whole in _SPLIT_WORDS:
        text = pattern.sub(whole, text)
    text = _HESITATION.sub(" ", text)
    text = _SET_OFF.sub("", text)
    text = _OPENING.sub("", re.sub(r"\A[\s,]*,", "", text))
    return _STUTTER.sub(r"\1", text)


_REWORDED: Final = (
    (
        re.compile(
            r"\b(set|start|make) (?:two|three|2|3) (timer|alarm|reminder)s[\s,:]+(?:one\s+)?(?=for|at)", re.IGNORECASE
        ),
        r"\1 a \2 ",
    ),
    (re.compile(r"\s+for me(?=[\s.!?]*\Z)", re.IGNORECASE), ""),
    (re.compile(r"\b(?:make|take) a note to (?=remind me\b)", re.IGNORECASE), ""),
    (
        re.compile(r"\bwhen it(?:['’]s| is) (?=(?:\d|noon|midnight|half|quarter|[a-z]+ o['’]?clock))", re.IGNORECASE),
        "at ",
    ),
    (re.compile(r"\Aremind me (?=(?:again )?(?:what|which|how|who)\b)", re.IGNORECASE), "tell me "),
    # "Shopping list: bananas and yoghurt".
    (
        re.compile(
            r"\A(?:my |the )?(?P<list>shopping|grocery|groceries|packing|to[ -]?do|chores)(?:\s*[:,]| list\s*[:,]?)\s+"
            r"(?:needs |should have |wants |add )?(?!(?:please|is|are|was|has|for|items?|looks|thanks|too|again|now)\b)"
            r"(?P<items>\S.*)\Z",
            re.IGNORECASE,
        ),
        r"add \g<items> to my \g<list> list",
    ),
    (re.compile(r"\Atodo[:,]?\s+(?!list\b)(?P<items>\S.*)\Z", re.IGNORECASE), r"add \g<items> to my to do list"),
    (re.compile(r"\bwhat(?:['’]s| is) on my reminders? list\b", re.IGNORECASE), "what reminders do I have"),
    (
        re.compile(
            r"\A(?:i|we) (?:don['’]?t|do not|no longer) need (?P<one>(?:the|my|that) (?:\S+ ){0,4}(?:timer|"
            r"alarm|reminder)"
            r"(?: (?:for|at|to|about) \S.*?)?)(?: anymore| any more| any longer)?[\s.!]*\Z",
            re.IGNORECASE,
        ),
        r"cancel \g<one>",
    ),
    # The volume is the assistant's own, unless a device is named.
    (
        re.compile(
            r"\b(the volume (?:(?:up|down) )?(?:to|at) \S+(?:[ -]\w+)??) (?:percent|per cent|%)(?=[\s.!?]*\Z)",
            re.IGNORECASE,
        ),
        r"\1",
    ),
)


_BEGINS_TIME: Final = re.compile(
    rf"(?:in|at|on|by|tomorrow|tonight|today|this|next|every|each|{'|'.join(WEEKDAYS)})\b", re.IGNORECASE
)
_OPERATOR: Final = r"(?:plus|minus|times|divided by|multiplied by)"
_LIKE_NUMBERS: Final = "to|too|for|won|ate|fore"
_IN_SUM: Final = re.compile(
    rf"\b(?:{_LIKE_NUMBERS})(?= {_OPERATOR}\b)|"
    rf"(?:(?<=\bplus )|(?<=\bminus )|(?<=\btimes )|(?<=\bdivided by ))(?:{_LIKE_NUMBERS})\b",
    re.IGNORECASE,
)


_NAMED_FIRST: Final = re.compile(
    r"\A(?:a |an |new |another )*(?P<kind>reminder|alarm|timer)[\s:,]+(?!for\b.*\b(?:to|"
    r"about)\b)(?P<rest>\S.*?)[\s.!?]*\Z",
    re.IGNORECASE,
)


def _named_first(text: str) -> Iterator[str]:
    """Yields the request of "reminder: Thursday at nine, passport photos" and "new timer, three hours"."""
    match = _NAMED_FIRST.match(text)
    if match is None:
        return
    kind, rest = match["kind"].lower(), re.sub(r"\A(?:for|at|on) ", "", match["rest"])
    if kind == "timer" and parse_duration(rest) is not None:
        yield f"set a timer for {rest}"
    elif kind == "alarm" and any(is_whole(Reader.WHEN, each) for each in (rest, f"at {rest}")):
        yield f"set an alarm for {rest}"
    elif kind == "reminder" and (times := find(Reader.WHEN, rest)):
        first = times[0]
        what = f"{rest[: first.start]} {rest[first.end :]}".strip(" :,.-")
        if what and not (first.start and rest[first.end :].strip(" :,.-")):
            lead = "" if _BEGINS_TIME.match(first.text) else "at "
            yield f"remind me {lead}{first.text} saying {what}"


def _reworded(text: str) -> Iterator[str]:
    yield from _named_first(text)
    if _IN_SUM.search(text):
        yield _IN_SUM.sub(lambda match: _NUMBER_WORD[match[0].lower()], text)
    yield from (pattern.sub(meant, text) for pattern, meant in _REWORDED if pattern.search(text))


def forms(text: str) -> list[str]:
    """Returns the sentences that may have been meant, the most likely first. `text` is cleaned."""
    if len(text) > MAX_CHARS:
        return [text]
    found = dict.fromkeys(
        form.strip(" ,")
        for form in (
            *_without_slips(text),
            *_reworded(text),
            *restated(text),
            text,
            *(form for each in dict.fromkeys(_unwrapped(text)) for form in (each, *_named_first(each))),
            *_heard_right(text),
            *with_antecedent(text),
            *_without_story(text),
            *filter(None, [without_reason(text)]),
        )
    )
    return [form for form in found if form][:MAX_FORMS]


# Slips of the tongue: "for five, no wait, ten minutes".

_SLIP: Final = re.compile(
    r"[\s,.…—–-]+(?P<mark>(?:oh |uh )?(?:no hang on|no hold on|hang on|hold on|no wait|wait no|no no|no sorry|"
    r"sorry no|no actually|sorry i mean(?:t)?|"
    r"no i mean(?:t)?|wait i mean(?:t)?|"
    r"or rather|no rather|no make (?:it|that)|(?:actually )?make (?:it|that)|scratch that|correction|i mean"
    r"(?:t)?|actually no|"
    r"actually|sorry|wait|no|rather))"
    r"[\s,.…—–-]+",
    re.IGNORECASE,
)
_CLEAR_SLIP: Final = re.compile(
    r"no wait|wait no|no sorry|no i mean(?:t)?|wait i mean(?:t)?|sorry i mean(?:t)?|scratch that|no make|"
    r"or rather|correction",
    re.I,
)
_ADDED: Final = re.compile(r"(?:please\s+)?(?:add|put)\b", re.IGNORECASE)
"""What is put on a list is rarely more than a word: "add apples no pears to my list"."""
_PREPOSITION: Final = re.compile(r"(?:in|on|at|for|to|by|from|of|until|till)\b", re.IGNORECASE)


def mended(text: str) -> list[str]:
    """Returns an answer without slips of the tongue, and as it is: "five, no, six minutes"."""
    return list(dict.fromkeys((*_without_slips(text), *_last_said(text), text)))


def _last_said(text: str) -> Iterator[str]:
    """Yields what follows the last slip, with nothing before it to put it in the place of."""
    slips = list(_SLIP.finditer(text))
    if slips and (said := text[slips[-1].end() :].strip(" ,.!?")):
        yield said


def _without_slips(text: str) -> Iterator[str]:
    for slip in reversed(list(_SLIP.finditer(text))):
        left, right = text[: slip.start()].rstrip(" ,"), text[slip.end() :]
        said, meant = left.split(), right.split()
        if not said or not meant:
            continue
        if (mended := _mend(said, meant)) is not None:
            yield mended
        is_item = _ADDED.match(text) and said[-1].lower() not in SMALL_WORDS
        if _CLEAR_SLIP.search(slip["mark"]) is None and not is_item:
            continue
        # Begun anew: "set a timer, no wait, set an alarm for seven".
        if len(meant) >= 3:
            yield right
        count = next((at for at, word in enumerate(meant) if at and _PREPOSITION.match(word)), len(meant))
        if count < len(said):
            yield " ".join([*said[:-count], *meant])


def _mend(said: list[str], meant: list[str]) -> str | None:
    """Puts the first words after the slip in the place of the last words of the same kind before it."""
    for count in range(min(MAX_SLIP_WORDS, len(meant)), 0, -1):
        new = " ".join(meant[:count]).strip(",.?!")
        kinds = [is_kind for is_kind in _KINDS if is_kind(new)]
        for wrong in range(min(MAX_SLIP_WORDS, len(said) - 1), 0, -1):
            old = " ".join(said[-wrong:]).strip(",.")
            if bool(_PREPOSITION.match(old)) != bool(_PREPOSITION.match(new)):
                continue
            if any(is_kind(old) for is_kind in kinds):
                return " ".join([*said[:-wrong], *meant])
            if _PREPOSITION.match(old) and count == len(meant) and old.split()[:2] == new.split()[:2]:
                # "In the kitchen, no, in the hallway".
                return " ".join([*said[:-wrong], *meant])
            if parse_number(old) is not None and parse_duration(new) is not None:
                return " ".join([*said[:-wrong], *meant])
            if parse_number(new) is not None and parse_duration(old) is not None:
                unit = old.split()[-1]
                return " ".join([*said[:-wrong], *meant[:count], unit, *meant[count:]])
    return None


def _is_time(words: str) -> bool:
    return parse_date(words, _ANY_MOMENT.date()) is not None or (
        parse_number(words) is None and parse_when(words, _ANY_MOMENT) is not None
    )


_KINDS: Final[tuple[Callable[[str], bool], ...]] = (
    lambda words: parse_duration(words) is not None,
    _is_time,
    lambda words: parse_number(re.sub(r"\s*(?:percent|per cent|%|degrees)$", "", words)) is not None,
    lambda words: find_place(re.sub(r"^(?:in|for|to|from)\s+", "", words, flags=re.IGNORECASE)) is not None,
)

# Courtesies and names around a request.

_NAME: Final = (
    r"assistant|computer|antiphon|machine|robot|buddy|mate|friend|my friend|pal|darling|dear|love|there|you|everyone|"
    r"again"
)
_BEFORE: Final = re.compile(
    r"\s*(?:(?:hey|hi|hello|dear|ok|okay|yo|greetings|good (?:morning|afternoon|evening|day))"
    rf"(?:,? (?:my |dear )?(?:{_NAME}))*|(?:{_NAME})(?=,)|excuse me|pardon me|sorry(?: to bother you)?(?: but)?|please|"
    r"if (?:you (?:do not|don['’]?t) mind|you can|you could|possible|it is not too much trouble)|when (?:you|"
    r"ever you) (?:have|get|can)(?: a (?:moment|second|sec|minute|chance))?|"
    r"i (?:was|am|['’]m) wondering (?:if|whether) you (?:could|can|would)|i wonder (?:if|whether) you (?:could|"
    r"can|would)|i was wondering|i wonder|"
    r"(?:do you think|is there any chance|any chance) (?:that )?you (?:could|can)|would it be possible (?:for you )?to|"
    r"(?:(?:could|can|would|will) you )?(?:please )?do me a favou?r(?: and|,)?|"
    r"(?:would you )?be so kind (?:as )?(?:to|and)|"
    r"i(?:['’]d| would) (?:really )?(?:appreciate it if you (?:could|would)|be (?:grateful|glad|"
    r"happy) if you (?:could|would)|love (?:it if you (?:could|would)|you to|to know|for you to)|like (?:you to|"
    r"to know|to))|"
    r"(?:i (?:have|['’]ve got) a |a |just a |one )?(?:quick |little |small )?(?:question|favou?r|thing|"
    r"request)(?: for you)?(?=[,:.])|"
    r"i (?:need|want) (?:you )?to know|i need you to|i want you to|you (?:should|must|have to|need to|"
    r"can)(?= (?:set|add|put|remind|tell|turn|wake|show|read|give))|"
    r"(?:could|can|may) i (?:please )?(?:have|get)|help me with my \w+|"
    r"go ahead and|(?:can|could|would|will) you (?:maybe |perhaps |just |quickly |kindly |please )*|maybe|"
    r"perhaps|quickly|real quick|kindly|just|now|so|and|then|well|oh|alright|all right|right|yes|yeah|yep|sure|"
    r"no problem|thanks|thank you|great|cool|perfect|good)"
    r"(?:[\s,.!:]+|\Z)",
    re.IGNORECASE,
)
_AFTER: Final = re.compile(
    r"[\s,.!]{0,3}\b(?:please|thanks(?: a lot| so much| in advance)?|thank you(?: very much| so much| in advance)?|"
    r"if (?:you (?:do not|don['’]?t) mind|you can|you could|you would|possible)|when you (?:can|have (?:a|"
    r"the) (?:moment|second|minute|time|chance)|get a chance)|"
    r"would you|will you|could you|can you|(?:my )?(?:buddy|mate|friend|pal|darling|dear)|computer|assistant|"
    r"antiphon|for me|real quick|quickly|right away|"
    r"i (?:was|am) wondering|do you know|you know|or something|at the moment|okay|ok|right|then|"
    r"by any chance)[\s,.!?]{0,3}\Z",
    re.IGNORECASE,
)


def _ing(verb: str) -> str:
    doubled = verb + verb[-1] if verb in ("set", "put", "flip") else verb.removesuffix("e")
    return f"{doubled}ing"


_VERB_LIST: Final = "set add tell check remind turn put give show read wake convert look make start roll flip"
_VERBS: Final = {_ing(verb): verb for verb in _VERB_LIST.split()}
_GERUND: Final = re.compile(
    r"(?:(?:would|do) you mind|how about|thanks for|i(?:['’]d| would) appreciate(?: you| your)?)\s+"
    rf"({'|'.join(_VERBS)})\b",
    re.IGNORECASE,
)
MAX_COURTESIES: Final = 5


def _unwrapped(text: str) -> Iterator[str]:
    """Yields the text with more and more courtesies removed. The grammar decides which belong to the request."""
    mended = _GERUND.sub(lambda match: _VERBS[match[1].lower()], text)
    if mended != text:
        yield mended
    starts, end = [0], len(mended)
    for _ in range(MAX_COURTESIES):
        if (match := _BEFORE.match(mended, starts[-1])) and match.end() < end:
            starts.append(match.end())
        if (found := _AFTER.search(mended, starts[-1], end)) and found.start() > starts[-1]:
            end = found.start()
    for start in reversed(starts):
        yield mended[start:end]
    if len(starts) > 1:
        yield mended[starts[-1] :]


def _without_story(text: str) -> Iterator[str]:
    for _, rest in split_story(text):
        yield from (rest, bare(rest))


def bare(text: str) -> str:
    """Returns the text without any courtesies."""
    return next(iter(_unwrapped(text)), text).strip(" ,") or text


# What recognisers mishear.

_NUMBER_WORD: Final = {
    "to": "two",
    "too": "two",
    "for": "four",
    "won": "one",
    "ate": "eight",
    "fore": "four",
    "sex": "six",
}
_COUNTED: Final = (
    r"(?:plus|minus|times|divided by|multiplied by|minutes?|hours?|seconds?|percent|days?|weeks?|miles?|o['’]?clock)"
)
_MISHEARD: Final = (
    (re.compile(r"\bwh?ether\b", re.IGNORECASE), "weather"),
    (re.compile(r"\bto day\b", re.IGNORECASE), "today"),
    (re.compile(r"\bto night\b", re.IGNORECASE), "tonight"),
    (re.compile(r"\b(?:their|they['’]?re)\b", re.IGNORECASE), "there"),
    (re.compile(r"\b(?:four|fore)\b(?=\s+(?:\d|an?\b|\w+ (?:minutes?|hours?|seconds?)))", re.IGNORECASE), "for"),
    (re.compile(rf"\b({_LIKE_NUMBERS})\b(?=\s+{_COUNTED}\b)", re.IGNORECASE), None),
    (re.compile(rf"(?<=plus |imes |inus )(?:{_LIKE_NUMBERS})\b|(?<=by )(?:{_LIKE_NUMBERS})\b", re.IGNORECASE), None),
    (re.compile(r"\A(?:sit|sat|sent|said|said that|that)(?= (?:a|an|my|the)\b)", re.IGNORECASE), "set"),
    (re.compile(r"\b(an?|one|half an) our\b", re.IGNORECASE), r"\1 hour"),
    (re.compile(r"\b(\w+) ours\b", re.IGNORECASE), r"\1 hours"),
    (re.compile(r"\b(?:tymer|tie mer|timber|time or)\b", re.IGNORECASE), "timer"),
    (re.compile(r"\b(?:alarum|a lamb|elarm)\b", re.IGNORECASE), "alarm"),
    (re.compile(r"\b(?:remained|remind it|re mine)(?= me\b)", re.IGNORECASE), "remind"),
    (re.compile(r"\bfor cast\b|\bforcast\b|\bfore cast\b", re.IGNORECASE), "forecast"),
    (re.compile(r"\bjo ke\b|\bchoke\b|\byoke\b", re.IGNORECASE), "joke"),
    (re.compile(r"\bwhat(?:['’]?s| is) the thyme\b", re.IGNORECASE), "what is the time"),
    (re.compile(r"\b(?:wright|right|write) now\b", re.IGNORECASE), "right now"),
    (re.compile(r"\bremind me (?:two|too)\b", re.IGNORECASE), "remind me to"),
    (re.compile(r"\b(turn|switch|shut) of(?= (?:the|my|all|every)\b)", re.IGNORECASE), r"\1 off"),
    (re.compile(r"\b(tell me) (?:the|they|that|her|ah)(?= joke\b)", re.IGNORECASE), r"\1 a"),
)


def _heard_right(text: str) -> Iterator[str]:
    changed = text
    for pattern, meant in _MISHEARD:
        changed = pattern.sub(meant if meant is not None else lambda m: _NUMBER_WORD[m[0].lower()], changed)
    if changed != text:
        yield changed
        yield from _unwrapped(changed)
