"""Makes of what people say, or of what a recogniser wrote, the sentences that they meant: without hesitations, slips of
the tongue, courtesies and stories around the request, and with words that were split or misheard put right.

It only proposes. The first proposal that is a request in the sentences of the tools counts.
"""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final

from antiphon.models.builtin.fuzzy import SMALL_WORDS
from antiphon.words.dates import parse_date, parse_when
from antiphon.words.devices import write_out
from antiphon.words.numbers import parse_number
from antiphon.words.readers import Reader, find
from antiphon.words.schedules import parse_duration
from antiphon.words.zones import find_place

MAX_CHARS: Final = 300
"""A longer text is taken as it is."""
MAX_FORMS: Final = 10
"""Looking each of them up takes up to a few milliseconds."""
MAX_SLIP_WORDS: Final = 5
MAX_RESTS: Final = 2
_ANY_MOMENT: Final = datetime(2026, 3, 4, 10, tzinfo=UTC)

_QUOTED: Final = re.compile(r'("[^"]*"|“[^”]*”)')
_SPLIT_WORDS: Final = (
    (re.compile(r"\btime er\b", re.IGNORECASE), "timer"),
    (re.compile(r"\ba larm\b", re.IGNORECASE), "an alarm"),
    (re.compile(r"\bweek end\b", re.IGNORECASE), "weekend"),
    (re.compile(r"\bto morrow\b", re.IGNORECASE), "tomorrow"),
    (re.compile(r"\bre mind(er)?\b", re.IGNORECASE), r"remind\1"),
    (re.compile(r"\bcalender\b", re.IGNORECASE), "calendar"),
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
    (re.compile(r"\bwhat(?:['’]s| is) on my reminders? list\b", re.IGNORECASE), "what reminders do I have"),
    (
        re.compile(
            r"\A(?:i|we) (?:don['’]?t|do not|no longer) need (?P<one>(?:the|my|that) (?:\S+ ){0,4}(?:timer|alarm|reminder)"
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


_OPERATOR: Final = r"(?:plus|minus|times|divided by|multiplied by)"
_IN_SUM: Final = re.compile(
    rf"\b(?:to|too|for|won|ate|fore)(?= {_OPERATOR}\b)|"
    r"(?:(?<=\bplus )|(?<=\bminus )|(?<=\btimes )|(?<=\bdivided by ))(?:to|too|for|won|ate|fore)\b",
    re.IGNORECASE,
)


def _reworded(text: str) -> Iterator[str]:
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
            *_restated(text),
            text,
            *_unwrapped(text),
            *_heard_right(text),
            *_with_antecedent(text),
            *_without_story(text),
            *filter(None, [without_reason(text)]),
        )
    )
    return [form for form in found if form][:MAX_FORMS]


# Slips of the tongue: "for five, no wait, ten minutes".

_SLIP: Final = re.compile(
    r"[\s,.…—–-]+(?P<mark>(?:oh |uh )?(?:no wait|wait no|no no|no sorry|sorry no|no actually|sorry i mean(?:t)?|"
    r"no i mean(?:t)?|wait i mean(?:t)?|"
    r"or rather|no rather|no make (?:it|that)|make (?:it|that)|scratch that|correction|i mean(?:t)?|actually no|"
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
    r"i (?:was|am) wondering|do you know|you know|or something|okay|ok|right|then|by any chance)[\s,.!?]{0,3}\Z",
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
_LIKE_NUMBERS: Final = "to|too|for|won|ate|fore"
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


# A story before the request.

_STORY: Final = re.compile(
    r"(?:(?:okay|ok|so|well|oh|hey|hi|hello|um)[\s,]+)*(?:i(?:['’](?:m|ve|ll|d))?|we(?:['’](?:re|ve|ll|d))?|my|"
    r"our|it(?:['’]s)?|there(?:['’]s| is| are)|the|"
    r"she|he|they|dinner|lunch|breakfast|guests|someone|today|tomorrow|tonight)\b",
    re.IGNORECASE,
)
_NO_STORY: Final = re.compile(
    r"\b(?:not|don['’]?t|never|no|if|unless|said|says|say|told|tells|asked|asks|wrote|heard|should|wish|might|"
    r"whether|would|used to)\b",
    re.I,
)
_TURN: Final = re.compile(
    r"[,.;!?]+\s+(?:(?:and|so|then|but)\s+)*|\s+(?:and\s+)?so\s+|\s+and\s+(?=(?:i (?:need|want)|can|could|would|"
    r"please)\b)|"
    r"\s+(?=(?:can|could|would|will) you\b)|\s+(?=please\b)",
    re.IGNORECASE,
)


_BARE_TURN: Final = re.compile(
    r"\s+(?=(?:set|start|add|put|turn|switch|shut|remind|tell|give|show|wake|what|what['’]s|how|which|cancel|delete|"
    r"remove|convert|read|open|close|lock|dim|make it|cheer|flip|roll|pick|search|find|let me know|is it|will it|"
    r"do i|am i)\b)",
    re.IGNORECASE,
)
"""Where a request begins that a recogniser has not separated from the story."""
_WHOLE_STORY: Final = re.compile(
    r"(?:(?:okay|ok|so|well|oh|hey)\s+)*(?:(?:i|we)(?:['’](?:m|re|ve)| am| are| have| was| just| need| want| live| weigh|"
    r" quit| started| had an?| had no| got an?| feel| can['’]?t)|it(?:['’]s| is| was)|there(?:['’]s| is| are)|"
    r"(?:my|our|the) (?:\w+ ){1,3}(?:is|are|was|costs?)|dinner (?:is|was))\b",
    re.IGNORECASE,
)
_OPEN_END: Final = frozenset(
    "to and or but the a an my our your his her their of with for i we you he she they who which that what how when "
    "can could will would should must may might do does did not always usually often never ever sometimes only "
    "is are was were be am know knows wonder see say guess think sure idea tell".split()
)
"""A story does not end with one of these: "I want to | set a timer"."""


def _without_story(text: str) -> Iterator[str]:
    """Yields what follows a story: "I'm baking bread, so set a timer for forty minutes"."""
    for _, rest in _split_story(text):
        yield from dict.fromkeys((rest, bare(rest)))


def rests(text: str) -> list[str]:
    """Returns what may be the request after a story, the longest first."""
    return list(dict.fromkeys(rest for _, rest in _split_story(text)))[:MAX_RESTS]


def _split_story(text: str) -> Iterator[tuple[str, str]]:
    """Yields the story and the request, wherever the one may end and the other begin."""
    for turn in _TURN.finditer(text):
        story = text[: turn.start()]
        if turn.start() and _STORY.match(story) and _NO_STORY.search(story) is None:
            yield story, text[turn.end() :]
    for turn in _BARE_TURN.finditer(text):
        story = text[: turn.start()].rstrip(" ,.;")
        words = story.lower().split()
        if (
            len(words) >= 3
            and words[-1] not in _OPEN_END
            and _WHOLE_STORY.match(story)
            and _NO_STORY.search(story) is None
        ):
            yield story, text[turn.end() :]


# What the request refers to may be in the same sentence: "my sister is in Sydney, what time is it there".

_THERE: Final = re.compile(r"\s+(?:over )?there(?=[\s.!?]*\Z|\s+(?:now|right now|today|tomorrow|tonight)\b)", re.I)
_THAT_IN: Final = re.compile(
    r"(?:what(?:['’]s| is)|how (?:much|many) is) (?:that|it) in (?P<unit>\w[\w ]*?)[\s.!?]*\Z|"
    r"how many (?P<units>\w+) (?:is|are) (?:that|it)[\s.!?]*\Z",
    re.IGNORECASE,
)
_DAY_OF_THAT: Final = re.compile(r"(?:what|which) (?:day|weekday)(?: of the week)? (?:was|is|will) (?:that|it)\b", re.I)
_DAYS_SINCE: Final = re.compile(r"how (?P<much>many \w+|long)(?: ago)? (?:is|was|has it been)(?: (?:that|it))?\b", re.I)
_BEHIND: Final = re.compile(r"\b(?:was|were|quit|since|started|stopped|ago|last|had|bought|moved|met)\b", re.I)
_OUT_OF: Final = re.compile(
    r"(?:(?:i|we)(?:['’]re| are|['’]m| am)? (?:almost |nearly |all )?(?:out of|running (?:low|out)(?: of| on)?)|(?:i|we) "
    r"(?:also |still |really )?(?:need|have|want|ought)(?: to (?:buy|get|pick up|order))?|there(?:['’]s| is) no(?: more)?)\s+"
    r"(?P<items>\S.*?)(?: left| anymore| any more)?[\s,.;]+(?:so |and |please |can you |could you |just )*"
    r"(?P<verb>add|put|stick|write|throw) (?:it|them|that|those|both)(?: down)? (?P<where>(?:on|to|onto|in) .+)\Z",
    re.IGNORECASE,
)
_NO_LONGER: Final = re.compile(
    r"(?:(?:i|we)(?:['’]ve| have)? (?:already |just )?(?:got|bought|have|packed|picked up) (?:the |some )?(?P<got>\S.*?)|"
    r"(?:i|we) (?:don['’]?t|do not|no longer) need (?:the |any )?(?P<needless>\S.*?)(?: anymore| any more| any longer)?)"
    r"(?: already)?[\s,.;]+(?:so |and |please |(?:so )?you can |can you |could you )*"
    r"(?:take|cross|check|tick|strike|remove|delete) (?:it|them|that|those)(?: (?:off|out|from)?(?P<where> .+)?)?[\s.!]*\Z",
    re.IGNORECASE,
)
_APPOINTMENT: Final = re.compile(
    r"(?:(?:i|we)(?:['’]ve| have)(?: got)? |(?:i['’]m|i am|we['’]re|we are) (?:having |seeing |meeting |going to |"
    r"off to )(?:the )?|"
    r"there(?:['’]s| is) )(?P<event>\S.*?)[\s,.;]+(?:so |and |please |can you |could you )*"
    r"(?:put|add|enter|note|write|save|stick|pop|get) (?:it|that|this)(?: down)? (?:in|on|to|into) (?:my|the|our) "
    r"(?:calendar|diary|agenda|planner|schedule)"
    r"(?: please)?[\s.!?]*\Z",
    re.IGNORECASE,
)


_CALLED_OFF: Final = re.compile(
    r"(?:(?:(?:my|our|the) )?(?P<off>\S.*?) (?:is|was|has been|got|['’]s) (?:off|cancelled|canceled|not happening|"
    r"called off)|"
    r"(?:(?:my|our|the) )?(?P<never>\S.*?) (?:isn['’]?t|is not) happening(?: any ?more)?|"
    r"(?:i|we) (?:can['’]?t|cannot|won['’]?t|am not|will not) (?:make|make it to|go to|be going to|attend) (?:my |"
    r"our |the )?"
    r"(?P<missed>\S.*?)(?: any ?more| after all)?|"
    r"(?:i['’]m|we['’]re) not (?:going to|seeing|meeting|doing|having) (?:my |our |"
    r"the )?(?P<not>\S.*?)(?: any ?more| after all)?)"
    r"[\s,.;]+(?:so |and |please |can you |could you |you can )*"
    r"(?:take|get|remove|delete|cancel|wipe|scrap|strike|drop|clear) (?:it|that|this)"
    r"(?: (?:out of|off|from|in|on) (?:my|the|our) (?:calendar|diary|agenda|schedule|planner))(?: please)?[\s.!?]*\Z",
    re.IGNORECASE,
)


def _restated(text: str) -> Iterator[str]:
    """Yields the request of a sentence that names first what is to be added, removed or noted."""
    if match := _OUT_OF.match(text):
        # What somebody has run out of is bought.
        where = re.sub(r"\b(?:the|my|our) list(?=\W*\Z)", "my shopping list", match["where"])
        yield f"{match['verb']} {match['items']} {where}"
    if match := _NO_LONGER.match(text):
        where = (match["where"] or "").strip()
        yield f"remove {match['got'] or match['needless']} from {where if where.endswith('list') else 'my shopping list'}"
    if match := _APPOINTMENT.match(text):
        yield f"schedule {match['event']}"
    if match := _CALLED_OFF.match(text):
        event = next(part for part in match.groups() if part)
        yield f"remove {event} from my calendar"


def _with_antecedent(text: str) -> Iterator[str]:
    for story, rest in _split_story(text):
        yield from _put_in(story, rest)


def _put_in(story: str, rest: str) -> Iterator[str]:
    """Yields the request with what the story names in the place of "there" or "that"."""
    if _THERE.search(rest) and (places := find(Reader.PLACE, story)):
        yield _THERE.sub(f" in {places[0].text}", rest)
    elif (match := _THAT_IN.search(rest)) and (amounts := find(Reader.QUANTITY, story)):
        yield f"convert {amounts[0].text} to {match['unit'] or match['units']}"
    elif dates := find(Reader.DATE, story):
        if _DAY_OF_THAT.search(rest):
            yield f"what day of the week was {dates[0].text}"
        elif match := _DAYS_SINCE.search(rest):
            yield f"how {match['much']} {'since' if _BEHIND.search(story) else 'until'} {dates[0].text}"


_REASON: Final = re.compile(
    r",?\s+(?:because|since|so that|so i (?:can|do not|don['’]?t|will)|as)\s+(?:i|we|my|the|it|he|she|they)\b.*\Z|"
    r"[,.;]\s+(?:i(?:['’]m| am| have| need| want|['’]ve)|we(?:['’]re| are)|my|it(?:['’]s| is) for)\b.*\Z|"
    r"\s+(?:i['’]m|i am|we['’]re|we are) (?:going|off|leaving|about|just|making|baking|cooking|heading|done|tired|cold)\b.*\Z",
    re.IGNORECASE,
)


def without_reason(text: str) -> str | None:
    """Returns the text without a reason that follows the request: "… because I'm baking bread"."""
    match = _REASON.search(text)
    return text[: match.start()] if match and match.start() else None
