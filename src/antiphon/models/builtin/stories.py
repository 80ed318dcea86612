"""Requests with a story around them: before it, as a reason after it, or with what it refers to.

"I'm baking bread, so set a timer for forty minutes", "my sister is in Sydney, what time is it there".
"""

import re
from collections.abc import Iterator
from typing import Final

from antiphon.words.readers import Reader, find

MAX_RESTS: Final = 2
MAX_BREAKS: Final = 12
"""What has more commas and full stops is no story with a request. The patterns below would take long for it, too."""

_BREAK: Final = re.compile(r"[,.;]")

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
    r"(?:(?:okay|ok|so|well|oh|hey)\s+)*(?:(?:i|we)(?:['’](?:m|re|ve)| am| are| have| was| just| need| want|"
    r" live| weigh|"
    r" quit| started| had an?| had no| got an?| feel| can['’]?t)|it(?:['’]s| is| was)|there(?:['’]s| is| are)|"
    r"(?:my|our|the) (?:\w+ ){1,4}(?:is|are|was|costs?|has|have)|(?:my|our|the) (?:\w+ ){0,4}\w+['’]s|dinner "
    r"(?:is|was))\b",
    re.IGNORECASE,
)
_CAUSED: Final = re.compile(
    r"\b(?:ha[dsv]e?|let|makes?|made|helped|watched|saw|got|asked|want(?:ed)?|need) "
    r"(?:him|her|them|us|me|you|someone|somebody|(?:the|my|our|his|her) (?:\w+ )?\w+)\Z",
    re.IGNORECASE,
)
"""How a story ends that goes on with what somebody was made to do: "we had the electrician | turn the lights off"."""
_OPEN_END_LIST: Final = """
    to and or but the a an my our your his her their of with for i we you he she they who which that what how when
    can could will would should must may might do does did not always usually often never ever sometimes only
    is are was were be am know knows wonder see say guess think sure idea tell
"""
_OPEN_END: Final = frozenset(_OPEN_END_LIST.split())
"""A story does not end with one of these: "I want to | set a timer"."""


def rests(text: str) -> list[str]:
    """Returns what may be the request after a story, the longest first."""
    return list(dict.fromkeys(rest for _, rest in split_story(text)))[:MAX_RESTS]


def split_story(text: str) -> Iterator[tuple[str, str]]:
    """Yields the story and the request, wherever the one may end and the other begin."""
    if len(_BREAK.findall(text)) > MAX_BREAKS:
        return
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
            and _CAUSED.search(story) is None
            and _NO_STORY.search(story) is None
        ):
            yield story, text[turn.end() :]


# What the request refers to may be in the same sentence: "my sister is in Sydney, what time is it there".

_THERE: Final = re.compile(
    r"\s+(?:(?:over )?there|for (?:her|him|them))(?=[\s.!?]*\Z|\s+(?:now|right now|today|tomorrow|tonight)\b)", re.I
)
_THAT_IN: Final = re.compile(
    r"(?:what(?:['’]s| is)|how (?:much|many) is) (?:that|it) in (?P<unit>\w[\w ]*?)[\s.!?]*\Z|"
    r"how many (?P<units>\w+) (?:is|are) (?:that|it)[\s.!?]*\Z",
    re.IGNORECASE,
)
_ABOUT_PLACE: Final = re.compile(r"\b(?:weather|temperature|forecast|rain|snow|sunny|warm|cold|hot)\b", re.IGNORECASE)
_IN_ROOM: Final = re.compile(
    r"\bin the (kitchen|bedroom|bathroom|hallway|hall|office|study|garage|(?:living|dining) room)\b", re.I
)
_DEVICE: Final = re.compile(r"\b(?:lights?|lamp|heating|heater|fan|blinds?|curtains?)\b", re.IGNORECASE)
_COURTESY: Final = re.compile(r"[\s,]+(?:please|(?:would|will|can|could) you)[\s.!?]*\Z", re.IGNORECASE)
_DAY_OF_THAT: Final = re.compile(r"(?:what|which) (?:day|weekday)(?: of the week)? (?:was|is|will) (?:that|it)\b", re.I)
_DAYS_SINCE: Final = re.compile(r"how (?P<much>many \w+|long)(?: ago)? (?:is|was|has it been)(?: (?:that|it))?\b", re.I)
_BEHIND: Final = re.compile(r"\b(?:was|were|quit|since|started|stopped|ago|last|had|bought|moved|met)\b", re.I)
_OUT_OF: Final = re.compile(
    r"(?:for the \w+,? )?(?:(?:i|we)(?:['’]re| are|['’]m| am|['’]ve| have)? (?:almost |nearly |all |just )?"
    r"(?:out of|run out of|running (?:low|out)(?: of| on)?)|"
    r"(?:i|we)"
    r"(?:['’]ve|['’]ll)? (?:also |still |really )?(?:need|have|want|ought|got|must)(?: to(?: (?:buy|get|pick up|"
    r"order))?)?|there(?:['’]s| is) no(?: more)?)\s+"
    r"(?P<items>\S.*?)(?: left| anymore| any more)?[\s,.;]+(?:so |and |please |can you |could you |just )*"
    r"(?P<verb>add|put|stick|write|throw) (?:it|them|that|those|both|some)(?: down)?[ ]?(?P<where>(?:on|to|onto|"
    r"in) .+)?[\s.!?]*\Z",
    re.IGNORECASE,
)
_NO_LONGER: Final = re.compile(
    r"(?:(?:(?:i|we)(?:['’]ve| have)? )?(?:already |just )?(?:got|bought|have|packed|picked up) (?:the |"
    r"some )?(?P<got>\S.*?)|"
    r"(?:i|we) (?:don['’]?t|do not|no longer) need (?:the |any )?(?P<needless>\S.*?)(?: anymore| any more|"
    r" any longer)?)"
    r"(?: already)?[\s,.;]+(?:so |and |please |(?:so )?you can |can you |could you )*"
    r"(?:take|cross|check|tick|strike|remove|delete) (?:it|them|that|those|both)(?: (?:off|out|"
    r"from)?(?P<where> .+)?)?[\s.!]*\Z",
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


_REMIND_AFTER: Final = re.compile(
    r"(?:i|we)(?:['’]ve got| have(?: got)?|['’]m supposed| am supposed| need| must| should|['’]d better|"
    r" ought) (?:to )?"
    r"(?P<task>\S.*?)[\s,.;]+(?:so |and |please |can you |could you |would you |will you )*"
    r"(?:remind me|(?:give|set|send) me a reminder|set a reminder)(?P<when> (?:at|in|on|for|tomorrow|tonight|"
    r"this|next) .+?)?"
    r"(?: (?:of that|about (?:it|that)|please|then|would you|will you|to do (?:it|that|so)))*[\s.!?]*\Z",
    re.IGNORECASE,
)


def restated(text: str) -> Iterator[str]:
    """Yields the request of a sentence that names first what is to be added, removed or noted."""
    if len(_BREAK.findall(text)) > MAX_BREAKS:
        return
    if match := _OUT_OF.match(text):
        # What somebody has run out of is bought.
        where = re.sub(r"\b(?:the|my|our) list(?=\W*\Z)", "my shopping list", match["where"] or "on my list")
        yield f"{match['verb']} {match['items']} {where}"
    if match := _NO_LONGER.match(text):
        where = (match["where"] or "").strip()
        named = where if where.endswith("list") else "my shopping list"
        yield f"remove {match['got'] or match['needless']} from {named}"
    if match := _REMIND_AFTER.match(text):
        yield f"remind me{match['when'] or ''} to {match['task']}"
    if match := _APPOINTMENT.match(text):
        yield f"schedule {match['event']}"
    if match := _CALLED_OFF.match(text):
        event = next(part for part in match.groups() if part)
        yield f"remove {event} from my calendar"


def with_antecedent(text: str) -> Iterator[str]:
    for story, rest in split_story(text):
        yield from _put_in(story, rest)


def _put_in(story: str, rest: str) -> Iterator[str]:
    """Yields the request with what the story names in the place of "there" or "that"."""
    rest = _COURTESY.sub("", rest)
    if _THERE.search(rest) and (places := find(Reader.PLACE, story)):
        yield _THERE.sub(f" in {places[0].text}", rest)
    elif (match := _THAT_IN.search(rest)) and (amounts := find(Reader.QUANTITY, story)):
        yield f"convert {amounts[0].text} to {match['unit'] or match['units']}"
    elif _ABOUT_PLACE.search(rest) and not find(Reader.PLACE, rest) and (places := find(Reader.PLACE, story)):
        days = [each.text for each in find(Reader.DATE, story) if not find(Reader.DATE, rest)]
        yield " ".join([rest.rstrip(" .?!"), *days[:1], f"in {places[0].text}"])
        yield " ".join([rest.rstrip(" .?!"), f"in {places[0].text}", *days[:1]])
    elif (room := _IN_ROOM.search(story)) and _DEVICE.search(rest) and not _IN_ROOM.search(rest):
        yield f"{rest.rstrip(' .?!')} in the {room[1]}"
    elif dates := find(Reader.DATE, story):
        if _DAY_OF_THAT.search(rest):
            yield f"what day of the week was {dates[0].text}"
        elif match := _DAYS_SINCE.search(rest):
            yield f"how {match['much']} {'since' if _BEHIND.search(story) else 'until'} {dates[0].text}"


_REASON: Final = re.compile(
    r",?\s+(?:because|since|so that|so i (?:can|do not|don['’]?t|will)|as)\s+(?:i|we|my|the|it|he|she|they)\b.*\Z|"
    r"[,.;]\s+(?:i(?:['’]m| am| have| need| want|['’]ve)|we(?:['’]re| are)|my|it(?:['’]s| is)|the \w+ (?:is|"
    r"are)|the \w+['’]s|he|she|they)\b.*\Z|"
    r"[\s,]+(?:i|we) (?:don['’]?t|do not|no longer|won['’]?t) (?:need|want) (?:it|that|them|one)\b.*\Z|"
    r"\s+(?:please\s+)?(?:i|we|he|she|they)(?:['’](?:m|ve|re|ll|d|s)| am| are| is| have| has| can['’]?t|"
    r" don['’]?t)\b.*\Z|"
    r"\s+(?:please\s+)?(?:the|my) \w+(?: \w+)?(?:['’]s| is| are| has)\b.*\Z",
    re.IGNORECASE,
)


def without_reason(text: str) -> str | None:
    """Returns the text without a reason that follows the request: "… because I'm baking bread"."""
    match = _REASON.search(text)
    return text[: match.start()] if match and match.start() else None
