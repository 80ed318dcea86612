"""Checks the sentences of a tool, on their own and against those of other tools."""

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from hassil import RangeSlotList, SlotList, TextSlotList, WildcardSlotList

from antiphon.sentences.matching import SLOT, Matcher, Template, match_template, slots_in
from antiphon.sentences.phrases import Phrase
from antiphon.sentences.readings import Node, Slot, certain_slots, sample, shortest, tree, words
from antiphon.sentences.templates import Grammar, read
from antiphon.tools.spec import ToolSpec

MIN_LITERAL_WORDS: Final = 2
SAMPLES_CROSSED: Final = 64
"""How many readings of each template are tried on the templates of other tools."""
FEW: Final = 4
"""How many samples show how the words of a template combine ("joke[s]"). Its separate words are known anyway."""

NEUTRAL_WORD: Final = "something"

_NUMERIC: Final = {"integer", "number"}


def check(tool_id: str, raw: object, spec: ToolSpec) -> list[str]:
    """Lists everything that is wrong with a tool's sentences, each with its place."""
    problems: list[str] = []
    grammar = read(tool_id, raw, problems.append)
    for template in grammar.templates:
        found = chain(_check_words(template, grammar, spec), _check_arguments(template, grammar, spec))
        problems += [f'{template.place} "{template.text}": {problem}' for problem in found]
    for name in sorted(grammar.arguments.keys() - spec.parameters.get("properties", {}).keys()):
        problems.append(f"arguments.{name} is not a parameter of {tool_id}")
    return list(dict.fromkeys(problems))


def cross_check(all: Mapping[str, object], *, agreed: Collection[str] = ()) -> list[tuple[str, str]]:
    """Finds sentences that two tools claim. For each, names the tool to mend, and the problem: the one whose template
    takes too much, or whose example asks for the other.

    The tools in `agreed` are known to claim none of each other's sentences, and are not compared with each other.
    """
    if all.keys() <= set(agreed):
        return []
    grammars = [read(tool_id, raw, lambda problem: None) for tool_id, raw in sorted(all.items())]
    matcher = Matcher(template for grammar in grammars for template in grammar.templates)
    found: dict[tuple[str, str, str], tuple[str, str]] = {}
    for tool_id, grammar in zip(sorted(all), grammars, strict=True):
        rivals = frozenset(all.keys() - {tool_id} - (set(agreed) if tool_id in agreed else set()))
        for own in grammar.templates:
            node = own.compiled.tree
            # Few templates could say what another tool's template requires, and only those are worth sampling.
            vocabulary = " ".join([*words(node), *_samples(node, grammar.lists, FEW)])
            if not _others(matcher, rivals, vocabulary):
                continue
            for phrase in map(Phrase, _samples(node, grammar.lists, SAMPLES_CROSSED)):
                for other in _others(matcher, rivals, phrase.text):
                    pair = (own.tool_id, other.tool_id, other.text)
                    if pair not in found and match_template(other, phrase):
                        problem = f'{other.place} "{other.text}" also takes "{phrase.text}" of {own.tool_id}'
                        found[pair] = (other.tool_id, problem)
        for example in map(Phrase, grammar.examples):
            for other in _others(matcher, rivals, example.text):
                pair = (tool_id, other.tool_id, other.text)
                if pair not in found and match_template(other, example):
                    if tool_id in agreed:
                        problem = f'{other.place} "{other.text}" also takes the example "{example.text}" of {tool_id}'
                        found[pair] = (other.tool_id, problem)
                    else:
                        problem = f'examples "{example.text}": {other.tool_id} takes it with "{other.text}"'
                        found[pair] = (tool_id, problem)
    return list(found.values())


def _others(matcher: Matcher, rivals: frozenset[str], text: str) -> list[Template]:
    return [template for template in matcher.candidates(text) if template.tool_id in rivals]


def _samples(node: Node, lists: Mapping[str, SlotList], limit: int) -> list[str]:
    def fill(slot: Slot) -> str:
        match lists.get(slot.list_name):
            case RangeSlotList(start=start):
                return str(start)
            case TextSlotList(values=values) if values:
                return shortest(tree(values[0].text_in, {}))
        return NEUTRAL_WORD

    return sample(node, limit, fill)


def _check_words(template: Template, grammar: Grammar, spec: ToolSpec) -> Iterator[str]:
    # Without a slot for any words, as in "snooze", it takes no sentence of another tool.
    lists = (grammar.lists.get(slot.list_name) for slot in template.compiled.slots)
    is_open = any(not isinstance(listed, TextSlotList | RangeSlotList) for listed in lists)
    # A number counts as a literal word, since other tools' sentences seldom have one in the same place.
    ranges = {
        f"{{{s.name}}}" for s in template.compiled.slots if isinstance(grammar.lists.get(s.list_name), RangeSlotList)
    }
    # So does a sign between slots, as in "{name}.{end}".
    literal = SLOT.sub(
        lambda slot: f" {slot[0]} " if slot[0] in ranges else " ", shortest(template.compiled.tree)
    ).split()
    if is_open and len(literal) < MIN_LITERAL_WORDS:
        yield (
            f"it can be said with {len(literal)} word{'' if len(literal) == 1 else 's'} of its own; "
            f"at least {MIN_LITERAL_WORDS} must be in every reading, or it takes the sentences of other tools"
        )
    outputs = (spec.outputs or {}).get("properties")
    if template.say is not None and outputs is not None:
        for key in sorted(set(SLOT.findall(template.say)) - outputs.keys()):
            yield f'"say" names {{{key}}}, which is not in the outputs of {spec.tool_id}'


def _check_arguments(template: Template, grammar: Grammar, spec: ToolSpec) -> Iterator[str]:
    properties: Mapping[str, Any] = spec.parameters.get("properties", {})
    here = {slot.name: slot for slot in template.compiled.slots}
    args = template.args or {}
    sources = {name: set(slots_in(value)) for name, value in args.items()}
    used = set().union(*sources.values())
    for name in sorted(here.keys() - used):
        if name not in properties:
            yield f'the slot {{{name}}} is not a parameter of {spec.tool_id}, and "args" does not use it'
        else:
            yield from _check_kind(here[name], grammar.lists.get(here[name].list_name), properties[name])
    for name in sorted(args.keys() - properties.keys()):
        yield f'"args" gives {name}, which is not a parameter of {spec.tool_id}'
    siblings = [t for t in grammar.templates if t.args is template.args]
    for name in sorted(used - {slot.name for t in siblings for slot in t.compiled.slots}):
        yield f'"args" uses {{{name}}}, which is not a slot of its sentences'
    given = certain_slots(template.compiled.tree)
    for name in spec.parameters.get("required", ()):
        provided = sources[name] <= given if name in args else name in given - used
        is_asked_for = name in grammar.arguments and grammar.arguments[name].ask is not None
        if not provided and not is_asked_for and "default" not in properties.get(name, {}):
            yield (
                f"it can be said without giving {name}, which is required; give it, or a question for it: "
                f'arguments: {{{name}: {{reader: …, ask: "…?"}}}}'
            )


def _check_kind(slot: Slot, listed: SlotList | None, parameter: Mapping[str, Any]) -> Iterator[str]:
    """Checks that a slot gives the parameter's type, since the gate does not convert words to numbers or back."""
    kind = parameter.get("type")
    match listed:
        case RangeSlotList() if kind == "string":
            yield f'the slot {{{slot.name}}} gives a number, but the parameter is a string; make it one with "args"'
        case TextSlotList(values=values) if "enum" in parameter:
            for value in values:
                if value.value_out not in parameter["enum"]:
                    yield f"the slot {{{slot.name}}} can give {value.value_out!r}, which the parameter does not allow"
        case WildcardSlotList() if kind in _NUMERIC:
            yield f'the slot {{{slot.name}}} takes any words, but the parameter is a number; give it a range in "lists"'
