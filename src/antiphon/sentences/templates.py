"""Reads sentences.yaml into templates that can be matched. Everything that cannot be read is reported.

data:                                  a list of entries
  - sentences: [...]                   hassil templates: [optional], (a|b), {slot}, <rule>
    args: {expression: "{a} of {b}"}   optional: arguments made from slots, or lists of them; other values are constants
    say: "That makes {result}."        optional: how to say the result, from the keys of its data
lists: {days: {range: {from: 0, to: 99}}}   optional: what a slot takes; a slot that is not listed takes any words
expansion_rules: {name: template}           optional
slot_examples: {place: Tokyo}               optional: words for slots, to show people what they could say
examples: [...]                             optional: varied requests in plain words, to match others by their meaning
arguments:                                  optional: how arguments are found in requests that no template matches
  duration: {reader: duration, ask: "For how long?"}     ask: the question for an argument that must be there
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import msgspec
from hassil import Intents, SlotList, WildcardSlotList, is_template, parse_sentence
from hassil.intents import Intent, IntentData
from hassil.parse_expression import ParseExpressionError
from hassil.parser import ParseError

from antiphon.errors import AntiphonError
from antiphon.sentences.matching import LANGUAGE, SLOT, Compiled, Template
from antiphon.sentences.phrases import expand
from antiphon.sentences.readings import slots, tidy, tree
from antiphon.words.readers import Reader

WIDEST_RANGE: Final = 2_000
"""hassil spells out every number of a range: 47 ms for a thousand, minutes for a million."""

_TOP_KEYS: Final = {"data", "lists", "expansion_rules", "slot_examples", "examples", "arguments"}
_ENTRY_KEYS: Final = {"sentences", "args", "say"}

Report = Callable[[str], None]
"""Called with each problem, as a sentence that says where it is."""


class SentencesError(AntiphonError):
    """The sentences of a tool cannot be read."""

    code = "sentences"


@dataclass(frozen=True, slots=True)
class Argument:
    """How an argument of the tool is found in a request that no template matches."""

    reader: Reader
    ask: str | None = None
    """The question to ask if it is missing."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """The sentences of one tool."""

    tool_id: str
    templates: tuple[Template, ...] = ()
    lists: Mapping[str, SlotList] = field(default_factory=dict)
    slot_examples: Mapping[str, str] = field(default_factory=dict)
    """Example words for slots, by the slot's name, for sentences that are shown to people."""
    examples: tuple[str, ...] = ()
    """Requests in plain words, which others are compared with by their meaning."""
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    """By parameter."""


def parse(tool_id: str, raw: object) -> Grammar:
    """Parses the sentences for a `Matcher`. Raises `SentencesError` with everything that cannot be read."""
    problems: list[str] = []
    grammar = read(tool_id, raw, problems.append)
    if problems:
        raise SentencesError(f"{tool_id}/sentences.yaml: {'; '.join(problems)}")
    return grammar


def read(tool_id: str, raw: object, report: Report) -> Grammar:
    if not isinstance(raw, Mapping):
        report('it must be a mapping with the key "data"')
        return Grammar(tool_id)
    _report_unknown("it", raw, _TOP_KEYS, report)
    lists = _read_lists(raw.get("lists", {}), report)
    rules = _read_rules(raw.get("expansion_rules", {}), report)
    entries = raw.get("data")
    if not isinstance(entries, list) or not entries:
        report('"data" must be a list with at least one entry')
        entries = []
    templates = [t for n, entry in enumerate(entries) for t in _read_entry(tool_id, n, entry, lists, rules, report)]
    used = {slot.list_name for template in templates for slot in template.compiled.slots}
    for name in sorted(lists.keys() - used) if templates else ():
        report(f'"lists" has {name}, which no sentence uses')
    known_slots = {s.name for t in templates for s in t.compiled.slots}
    return Grammar(
        tool_id,
        tuple(templates),
        {name: listed for t in templates for name, listed in t.compiled.intent.data[0].slot_lists.items()},
        _read_slot_examples(raw.get("slot_examples", {}), known_slots, report),
        _read_examples(raw.get("examples", []), report),
        _read_arguments(raw.get("arguments", {}), report),
    )


def _report_unknown(place: str, found: Mapping[Any, Any], known: set[str], report: Report) -> None:
    for key in found:
        if key not in known:
            report(f'{place} has the unknown key "{key}"; known are {", ".join(sorted(known))}')


def _read_entry(
    tool_id: str, number: int, entry: object, lists: dict[str, Any], rules: dict[str, str], report: Report
) -> Iterator[Template]:
    place = f"data[{number}]"
    if not isinstance(entry, Mapping):
        report(f"{place} must be a mapping")
        return
    _report_unknown(place, entry, _ENTRY_KEYS, report)
    args, say = entry.get("args"), entry.get("say")
    if args is not None and not (isinstance(args, Mapping) and all(isinstance(name, str) for name in args)):
        report(f'{place} "args" must be a mapping from parameters to values')
        args = None
    if say is not None and not (isinstance(say, str) and say.strip()):
        report(f'{place} "say" must be a text')
        say = None
    for text in _texts([say, *(args or {}).values()]):
        if re.search("[{}]", SLOT.sub("", text)):
            report(f'{place} "{text}" has a brace that is not part of a {{name}}')
    sentences = entry.get("sentences")
    if not isinstance(sentences, list) or not sentences:
        report(f'{place} "sentences" must be a list with at least one template')
        return
    frozen = msgspec.json.encode(lists), msgspec.json.encode(rules)
    for index, text in enumerate(sentences):
        where = f"{place}.sentences[{index}]"
        if not isinstance(text, str) or not text.strip():
            report(f"{where} must be a text")
            continue
        try:
            compiled = _compile(text, *frozen)
        except (ParseError, ValueError) as error:
            report(f'{where} "{text}": {_told(error)}')
            continue
        yield Template(tool_id, tidy(text), where, compiled, args, say)


def _texts(values: Iterable[Any]) -> Iterator[str]:
    """Yields the texts among the values, and in lists."""
    for value in values:
        if isinstance(value, list):
            yield from _texts(value)
        elif isinstance(value, str):
            yield value


# hassil takes 0.2 ms to parse a template, and a build reads each one twice: alone, and against all others.
@lru_cache(maxsize=4096)
def _compile(text: str, lists: bytes, rules: bytes) -> Compiled:
    """Raises ValueError or hassil's ParseError for a template that is not well formed."""
    shared = _shared(lists, rules)
    data = IntentData([expand(text)], expansion_rules=shared.expansion_rules, slot_lists=dict(shared.slot_lists))
    try:
        (sentence,) = data.sentences
    except AssertionError as error:
        raise ValueError("a pair of brackets is empty") from error
    node = tree(sentence.expression, shared.expansion_rules)
    named = tuple(slots(node))
    for slot in named:
        if not (slot.name.isidentifier() and slot.list_name.isidentifier()):
            raise ValueError(f'{{{slot.name}}} is not a valid name for a slot; a range of numbers goes into "lists"')
        data.slot_lists.setdefault(slot.list_name, WildcardSlotList(slot.list_name))
    return Compiled(Intent(text, [data]), node, named, sentence.get_required_clauses(shared.expansion_rules))


@lru_cache(maxsize=64)
def _shared(lists: bytes, rules: bytes) -> Intents:
    decode = msgspec.json.decode
    return Intents.from_dict(
        {"language": LANGUAGE, "intents": {}, "lists": decode(lists), "expansion_rules": decode(rules)}
    )


def _told(error: Exception) -> str:
    # hassil's own message exposes the internals of its parser.
    return "a closing bracket has no opening one" if isinstance(error, ParseExpressionError) else str(error)


def _read_rules(raw: object, report: Report) -> dict[str, str]:
    if not isinstance(raw, Mapping) or not all(isinstance(n, str) and isinstance(b, str) for n, b in raw.items()):
        report('"expansion_rules" must be a mapping from names to templates')
        return {}
    good = {}
    for name, body in raw.items():
        if problem := _template_problem(body):
            report(f'expansion_rules.{name} "{body}": {problem}')
        else:
            good[name] = expand(body)
    return good


def _read_slot_examples(raw: object, slots: set[str], report: Report) -> dict[str, str]:
    if not isinstance(raw, Mapping) or not all(isinstance(words, str) and words.strip() for words in raw.values()):
        report('"slot_examples" must be a mapping from slots to words')
        return {}
    for name in raw:
        if name not in slots:
            report(f'"slot_examples" has {name}, which is not a slot of any sentence')
    return {str(name): words for name, words in raw.items()}


def _read_examples(raw: object, report: Report) -> tuple[str, ...]:
    if not isinstance(raw, list) or not all(isinstance(each, str) and each.strip() for each in raw):
        report('"examples" must be a list of sentences; words for slots go into "slot_examples"')
        return ()
    return tuple(raw)


def _read_arguments(raw: object, report: Report) -> dict[str, Argument]:
    if not isinstance(raw, Mapping):
        report('"arguments" must be a mapping from parameters to {reader: ..., ask: ...}')
        return {}
    good = {}
    for name, given in raw.items():
        match given:
            case {"reader": str(reader), **rest} if reader in set(Reader) and rest.keys() <= {"ask"}:
                ask = rest.get("ask")
                if ask is None or (isinstance(ask, str) and ask.strip()):
                    good[str(name)] = Argument(Reader(reader), ask)
                else:
                    report(f'arguments.{name} "ask" must be a question')
            case _:
                report(f'arguments.{name} must have a "reader", one of {", ".join(Reader)}, and may have "ask"')
    return good


def _template_problem(text: str) -> str | None:
    try:
        parse_sentence(text)
    except ParseError as error:
        return _told(error)
    except AssertionError:
        return "a pair of brackets is empty"
    return None


def _read_lists(raw: object, report: Report) -> dict[str, Any]:
    if not isinstance(raw, Mapping):
        report('"lists" must be a mapping from slots to lists')
        return {}
    good = {}
    for name, listed in raw.items():
        problems = list(_list_problems(listed))
        for problem in problems:
            report(f"lists.{name} {problem}")
        if not problems:
            good[str(name)] = _expanded(listed)
    return good


def _list_problems(listed: object) -> Iterator[str]:
    match listed:
        case {"range": {"from": int(low), "to": int(high), **rest}, **nothing} if not nothing:
            if rest and not (rest.keys() == {"step"} and isinstance(rest["step"], int) and rest["step"] > 0):
                yield 'has a range with more than "from", "to" and a positive "step"'
            if low > high:
                yield 'has a range whose "from" is greater than its "to"'
            if high - low > WIDEST_RANGE:
                yield f"has a range of more than {WIDEST_RANGE} numbers; a slot that is not listed takes any words"
        case {"values": [_, *_] as values, **nothing} if not nothing:
            for value in values:
                yield from _value_problems(value)
        case {"wildcard": True, **nothing} if not nothing:
            return
        case _:
            yield (
                "must be one of {range: {from: 0, to: 9}} with integers, {values: [...]} with at least one value, "
                "and {wildcard: true}"
            )


def _value_problems(value: object) -> Iterator[str]:
    match value:
        case str() if not is_template(value):
            return
        case {"in": str(words), "out": _, **nothing} if not nothing:
            if problem := _template_problem(words):
                yield f'has the value "{words}": {problem}'
        case _:
            yield f'has the value {value!r}; a value is a text, or {{in: "a template", out: value}}'


def _expanded(listed: Mapping[str, Any]) -> dict[str, Any]:
    if "values" not in listed:
        return dict(listed)
    values = [{"in": v, "out": v} if isinstance(v, str) else v for v in listed["values"]]
    return {"values": [{"in": expand(value["in"]), "out": value["out"]} for value in values]}
