"""Tells people what they have said: "What time is it?" becomes "you asked what time it is".

Only sentences whose change is certain are changed. All others, and those in other languages, are quoted as they are.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Final

MAX_QUOTED_CHARS: Final = 120
MAX_READ_CHARS: Final = 2_000
"""How much of a long text is looked at."""
_ELLIPSIS: Final = "…"


class Act(StrEnum):
    """How what was said is told."""

    ASKED = "you asked"
    REQUESTED = "you asked me to"
    SAID = "you said"


@dataclass(frozen=True, slots=True)
class Report:
    """One thing that was said, as the end of a sentence that begins with the act."""

    act: Act
    clause: str

    def __str__(self) -> str:
        return f"{self.act} {self.clause}"


_NOISE: Final = re.compile(
    r"(?:h+m+|u+h+m*|u+m+|e+r+m*|a+h+|o+h+|hello|hi|hey|good (?:morning|afternoon|evening|night)|(?:good ?)?bye|"
    r"see you(?: later)?|(?:many )?thanks?(?: you)?(?: (?:a lot|so much|very much))?|ok(?:ay)?|yes|yeah|yep|no|nope|"
    r"sure|right|all ?right|great|cool|nice|please|so|well|then|never ?mind|there|again|antiphon|computer)"
    r"(?:[\s,.!]+|\Z)",
    re.IGNORECASE,
)
_POLITE_BEFORE: Final = re.compile(
    r"(?:(?:please|kindly|hey|hi|hello|ok|okay|alright|all right|so|well|oh|um+|uh+|and|then|now|actually|antiphon|"
    r"computer)[\s,.!:]+|"
    r"(?:(?:can|could|will|would) you(?: please)? )?(?:tell me|let me know|explain to me) (?=(?:what|who|whose|which|"
    r"where|when|why|how|if|whether)\b)|"
    r"(?:do you (?:happen to )?know|i(?:'d|’d| would) like to know|i (?:want|need) to know|i wonder|"
    r"i was wondering) (?=(?:what|who|whose|which|where|when|why|how|if|whether)\b)|"
    r"(?:(?:can|could|will|would) you|i(?:'d|’d| would) like you to|i (?:want|need) you to)(?: please)? (?=[a-z]))",
    re.IGNORECASE,
)
_POLITE_AFTER: Final = re.compile(r"[\s,]+(?:please|thanks|thank you|(?:can|could|will|would) you)\Z", re.IGNORECASE)
_IS_REQUEST: Final = re.compile(
    r"\W*(?:(?:hey|hi|hello|ok|okay|so|well|oh|um+|uh+|and|then|now|antiphon|computer)\W+)*"
    r"(?:please\W+|(?:can|could|will|would) you\b|i(?:'d|’d| would) like you to|i (?:want|need) you to)",
    re.IGNORECASE,
)

_IMPERATIVE: Final = re.compile(
    r"add|announce|answer|ask|book|buy|calculate|call|cancel|change|check|choose|close|compare|compute|connect|"
    r"continue|convert|copy|count|create|define|delete|describe|dial|disconnect|divide|do|email|end|enter|"
    r"explain|extract|find|flip|format|forget|get|give|go|help|increase|keep|list|look|lower|make|mark|move|"
    r"multiply|mute|open|order|pause|pick|plan|play|prepare|print|put|raise|rank|read|recommend|remember|remind|"
    r"remove|repeat|reply|reserve|resume|roll|save|say|schedule|search|send|set|show|shuffle|skip|sort|speak|"
    r"spell|start|stop|subtract|suggest|sum|switch|take|tell|text|translate|turn|type|unmute|update|use|wake|"
    r"write",
    re.IGNORECASE,
)
_SUBJECT: Final = {"i": "you", "you": "I", "we": "you"}
_OTHERS: Final = {
    "i": "you",
    "me": "you",
    "my": "your",
    "mine": "yours",
    "myself": "yourself",
    "we": "you",
    "us": "you",
    "our": "your",
    "ours": "yours",
    "ourselves": "yourselves",
    "your": "my",
    "yours": "mine",
    "yourself": "myself",
    "you": "me",
    "i'm": "you're",
    "i've": "you've",
    "i'd": "you'd",
    "i'll": "you'll",
    "we're": "you're",
    "we've": "you've",
    "we'd": "you'd",
    "we'll": "you'll",
}
_PRONOUN: Final = r"(?P<subject>i|you|we|it|he|she|they|there|this|that)"
_AUXILIARIES: Final = "is|are|am|was|were|can|could|will|would|should|shall|may|might|must|have|has|had|do|does|did"
_AUX: Final = rf"(?P<aux>{_AUXILIARIES})"
_PERSONS: Final = re.compile(
    rf"\b(?P<word>i|we|you) (?P<verb>{_AUXILIARIES})\b|(?P<other>[^\W\d_]+(?:['’][^\W\d_]+)?)", re.IGNORECASE
)
_FIRST_PERSON: Final = {"are": "am", "were": "was"}
_SECOND_PERSON: Final = {"am": "are", "was": "were"}
_REST: Final = r"(?P<rest>(?: .*)?)"
_INVERTED: Final = re.compile(rf"(?P<wh>(?:[a-z]\S*(?: \S+){{0,4}}? )?){_AUX} {_PRONOUN}{_REST}", re.IGNORECASE)
_COPULA: Final = re.compile(
    r"(?P<wh>what|who|where|when|how (?:old|far|big|tall|long|high|deep|heavy|much|many|hot|cold|warm|late))"
    r"(?:(?:'s|’s)| (?P<aux>is|are|was|were)) (?P<subject>.+)",
    re.IGNORECASE,
)
_NOUN_PHRASE: Final = re.compile(
    r"(?:(?:the|a|an|my|our|your|this|that|these|those|today's|tomorrow's|yesterday's)\b|\d|[A-ZÀ-Þ√(])"
)
_NOT_IN_NOUN_PHRASE: Final = re.compile(
    r"\b(?:like|now|today|tomorrow|yesterday|tonight|currently|going|doing|called|made|so|if|when|because|but|do|does|"
    r"did|is|are|was|were|will|can|there|here)\b|[,;:]",
    re.IGNORECASE,
)
MAX_SUBJECT_WORDS: Final = 9
_EMBEDDED: Final = re.compile(
    rf"(?:what|who|whose|which|where|when|why|how|if|whether)\b(?! (?:{_AUXILIARIES})\b)",
    re.IGNORECASE,
)
_HAS_AUXILIARY: Final = re.compile(
    rf"\b{_AUX}\b(?! (?:in|on|at|from|of|for|near|left|available)\b)|(?:'s|’s|'re|’re)\b", re.IGNORECASE
)
_AGREES: Final = {
    "is": ("it", "he", "she", "there", "this", "that"),
    "was": ("i", "it", "he", "she", "there", "this", "that"),
    "am": ("i",),
    "are": ("you", "we", "they", "there"),
    "were": ("you", "we", "they", "there"),
    "do": ("i", "you", "we", "they"),
    "does": ("it", "he", "she"),
    "have": ("i", "you", "we", "they", "there"),
    "has": ("it", "he", "she", "there"),
}
"""Which pronouns an auxiliary goes with. "Do it" and "have it" are no questions."""
_BRACKETED: Final = re.compile(r"\[[^\[\]]{0,40}\]|\([^()]{0,40}\)|\*[^*]{0,40}\*|<[^<>]{0,40}>")
"""How recognisers write noises: "[cough]"."""
_BEGINS_QUESTION: Final = re.compile(
    rf"(?:what|who|whose|which|where|when|why|how)\b|{_AUX} (?:i|you|we|it|he|she|they|there|the|this|that|my|your)\b",
    re.IGNORECASE,
)
_HOW_TO: Final = re.compile(r"how (?:do|can|could|should|would|shall) (?:i|you|we|one) (?P<rest>.+)", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_SENTENCE: Final = re.compile(r"(?<=[.!?…。！？؟])\s+|(?<=[。！？])")
_QUESTION_ENDS: Final = ("?", "？", "؟", "か", "吗", "嗎", "呢")
"""Question marks, and the words that a question ends with in languages that need no mark."""


def report(text: str, max_chars: int = MAX_QUOTED_CHARS) -> Report | None:
    """Tells the person what they have said; None if it was nothing but noise, thanks or a greeting."""
    heard = _BRACKETED.sub(" ", text[:MAX_READ_CHARS])
    sentences = [each for each in split_sentences(heard) if not is_noise(each)]
    if not sentences:
        return None
    if len(sentences) > 1:
        whole = " ".join(sentences)
        return Report(Act.ASKED if is_question(whole) else Act.SAID, quote(whole, max_chars))
    (said,) = sentences
    told = _report_sentence(said)
    if told is not None and len(told.clause) <= max_chars:
        return told
    return Report(Act.ASKED if is_question(said) else Act.SAID, quote(said, max_chars))


def is_noise(text: str) -> bool:
    """Whether there is nothing to tell about the text: no words, or a greeting, thanks or a bare yes."""
    bare = _BRACKETED.sub(" ", text[:MAX_READ_CHARS]).strip(".,;:!?…-–— \t\n")
    at = 0
    while match := _NOISE.match(bare, at):
        at = match.end()
    return not has_words(bare[at:])


def has_words(text: str) -> bool:
    """Whether there is anything in the text beside marks and noises in brackets."""
    return any(map(str.isalnum, _BRACKETED.sub(" ", text[:MAX_READ_CHARS])))


def is_question(text: str) -> bool:
    """Whether it is a question. What was spoken may have no question mark."""
    return _is_marked(text) or _BEGINS_QUESTION.match(_strip(text[:MAX_READ_CHARS].lstrip())) is not None


def _is_marked(text: str) -> bool:
    return text[-MAX_READ_CHARS:].rstrip(" \n\"'”’»)*_").endswith(_QUESTION_ENDS) or text.startswith("¿")


def split_sentences(text: str) -> list[str]:
    return [each for each in _SENTENCE.split(" ".join(text.split())) if each]


def quote(text: str, max_chars: int = MAX_QUOTED_CHARS) -> str:
    return f"“{shorten(text, max_chars)}”"


def shorten(text: str, max_chars: int) -> str:
    """Cuts a text at the end of a word, or of a character if it has no spaces."""
    line = " ".join(text.split())
    if len(line) <= max_chars:
        return line
    cut = line[: max_chars - 1]
    at = cut.rfind(" ")
    if at >= max_chars // 2 and line[len(cut)] != " ":
        cut = cut[:at]
    elif at < max_chars // 2:
        # What is cut may be the rest of a character that is written as several.
        while cut and _continues(line[len(cut)], cut[-1]):
            cut = cut[:-1]
    return cut.rstrip(" ,;:.-–—") + _ELLIPSIS


def join(clauses: Sequence[str]) -> str:
    """Joins clauses: "a", "a and b", "a, b, and c"."""
    if len(clauses) < 3:
        return " and ".join(clauses)
    return f"{', '.join(clauses[:-1])}, and {clauses[-1]}"


def tell(reports: Sequence[Report]) -> list[str]:
    """Tells what was said in sentences, one for what was done in the same way."""
    groups = groupby(reports, key=lambda each: each.act)
    return [end_sentence(f"{act} {join([each.clause for each in group])}") for act, group in groups]


def end_sentence(text: str) -> str:
    """Makes a text a sentence: with a capital letter, and a mark at its end."""
    text = text.strip()
    has_end = text.rstrip("”").endswith((".", "!", "?", "…", "。", "？", "！"))
    return text[:1].upper() + text[1:] + ("" if has_end else ".")


def _continues(following: str, last: str) -> bool:
    joins = "\u200d"
    return unicodedata.combining(following) != 0 or joins in (following, last) or following in "\ufe0e\ufe0f"


def _report_sentence(said: str) -> Report | None:
    """Returns None if it must be quoted."""
    text = said.strip(" \t\n.!?…")
    asks_politely = _IS_REQUEST.match(text) is not None
    stripped = _strip(text)
    if not stripped:
        return None
    first = _WORD.match(stripped)
    verb = "" if first is None else first[0].lower()
    if _IMPERATIVE.fullmatch(verb) and (asks_politely or not _is_marked(said)) and _inverted(stripped) is None:
        return Report(Act.REQUESTED, _swap(_lower_first(stripped)))
    for form in _QUESTION_FORMS:
        if (clause := form(stripped)) is not None:
            return Report(Act.ASKED, clause)
    if not is_question(said) and verb in ("i", "i'm", "i've", "i'd", "i'll", "my", "we", "our"):
        lowered = stripped.replace("’", "'")
        if re.search(r"\byou(?:r|rs|rself|'\w+)?\b", lowered, re.IGNORECASE) is None:
            return Report(Act.SAID, _swap(lowered))
    return None


def _strip(text: str) -> str:
    while match := _POLITE_BEFORE.match(text):
        text = text[match.end() :]
    while match := _POLITE_AFTER.search(text):
        text = text[: match.start()]
    return text.strip()


def _how_to(text: str) -> str | None:
    match = _HOW_TO.fullmatch(text)
    return None if match is None else f"how to {_swap(match['rest'])}"


def _inverted(text: str) -> str | None:
    """Turns "is it" around: "what time is it in Tokyo" becomes "what time it is in Tokyo"."""
    match = _INVERTED.fullmatch(text)
    if match is None:
        return None
    wh, aux, subject, rest = match["wh"].strip(), match["aux"].lower(), match["subject"].lower(), match["rest"]
    if wh and re.match(r"(?:what|who|whose|which|where|when|why|how)\b", wh, re.IGNORECASE) is None:
        return None
    if aux == "did" or subject not in _AGREES.get(aux, (subject,)):
        return None
    if subject in ("this", "that") and rest:
        # They may belong to a noun: "what is that song".
        return None
    told = _SUBJECT.get(subject, subject)
    if aux in ("do", "does"):
        verb, _, others = rest.strip().partition(" ")
        if not verb or subject == "there":
            return None
        verb = _third_person(verb) if subject in ("it", "he", "she") else verb
        clause = f"{told} {verb}{f' {others}' if others else ''}"
    else:
        is_be = aux in ("is", "are", "am", "was", "were")
        form = aux
        if is_be and subject in _SUBJECT:
            is_past = aux in ("was", "were")
            form = ("was" if subject == "you" else "were") if is_past else ("am" if subject == "you" else "are")
        clause = f"{told} {form}{rest}"
    before, after = clause.split(" ", 1)
    return f"{_lower_first(wh) if wh else 'whether'} {before} {_swap(after)}"


def _copula(text: str) -> str | None:
    """Turns "is" around: "what is the capital of France" becomes "what the capital of France is"."""
    match = _COPULA.fullmatch(text)
    if match is None:
        return None
    subject = match["subject"]
    is_simple = _NOUN_PHRASE.match(subject) is not None and _NOT_IN_NOUN_PHRASE.search(subject) is None
    if not is_simple or len(subject.split()) > MAX_SUBJECT_WORDS:
        return None
    return f"{_lower_first(match['wh'])} {_swap(subject)} {(match['aux'] or 'is').lower()}"


def _embedded(text: str) -> str | None:
    """Takes a question that has the order of words of a statement: "how many feet in a mile", "who wrote Hamlet"."""
    if _EMBEDDED.match(text) is None or len(text.split()) < 2:
        return None
    # Where an auxiliary follows later, its subject may stand after it: "what time does the train leave".
    head, tail = text.split(" ", 1)
    if "'" in head or "’" in head:
        return None
    if _HAS_AUXILIARY.search(tail) is not None and re.search(rf"\b{_PRONOUN} {_AUX}\b", tail, re.IGNORECASE) is None:
        return None
    return _swap(_lower_first(text))


_QUESTION_FORMS: Final[tuple[Callable[[str], str | None], ...]] = (_how_to, _inverted, _copula, _embedded)


def _third_person(verb: str) -> str:
    if verb == "have":
        return "has"
    if re.search(r"(?:s|sh|ch|x|z|o)\Z", verb):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if re.search(r"[^aeiou]y\Z", verb) else f"{verb}s"


def _swap(text: str) -> str:
    """Exchanges the persons: what the user calls "my" is "your" when it is told to them."""
    if re.search(r"\b(?:i|we|you)’", text, re.IGNORECASE):
        text = text.replace("’", "'")
    return _PERSONS.sub(_other_person, text)


def to_second_person(text: str) -> str:
    """Says what people call "my" and "I" to them: "call my mother" becomes "call your mother".

    What says "you" already stays as it is, since a model may have changed the persons itself.
    """
    text = re.sub(r"\b(i|we)’", r"\1'", text, flags=re.IGNORECASE)
    return _PERSONS.sub(lambda match: match[0] if _is_second_person(match) else _other_person(match), text)


def _is_second_person(match: re.Match[str]) -> bool:
    return (match["word"] or match["other"]).lower().startswith("you")


def _other_person(match: re.Match[str]) -> str:
    word, verb = match["word"] or match["other"], match["verb"]
    lower = word.lower()
    # "US" is a country, and "I" is a pronoun in any case.
    if lower not in _OTHERS or (word.isupper() and len(word) > 1):
        return match[0]
    if verb is None:
        return _OTHERS[lower]
    if lower == "you":
        return f"I {_FIRST_PERSON.get(verb.lower(), verb)}"
    return f"you {_SECOND_PERSON.get(verb.lower(), verb)}"


def _lower_first(text: str) -> str:
    word = _WORD.match(text)
    is_plain = word is not None and word[0][1:].islower() | (len(word[0]) == 1) and word[0] != "I"
    return text[:1].lower() + text[1:] if is_plain else text
