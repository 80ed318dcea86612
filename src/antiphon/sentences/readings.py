"""The readings of a sentence template: how many there are, samples of them, the shortest, the plainest, the nearest.

A template is turned from hassil's expression into a tree of four kinds of nodes, with the expansion rules put in. In
the text of a reading, a slot appears as `{name}`.
"""

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, permutations
from math import gcd, prod
from typing import Final

from hassil import Alternative, Expression, Group, ListReference, Permutation, RuleReference, Sentence, TextChunk

GOLDEN: Final = 0.618
MAX_PERMUTED: Final = 5
_ARTICLES: Final = frozenset(("a", "an", "the", "my"))
_BEFORE_VOWEL: Final = re.compile(r"\b(a)(?= [aeiou])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Text:
    text: str
    count: int = 1
    bare: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bare", bare(self.text))


@dataclass(frozen=True, slots=True)
class Slot:
    name: str
    list_name: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Chain:
    parts: "tuple[Node, ...]"
    count: int


@dataclass(frozen=True, slots=True)
class Choice:
    options: "tuple[Node, ...]"
    count: int


Node = Text | Slot | Chain | Choice

Fill = Callable[[Slot], str]
"""Returns the words that replace a slot."""


def chain(*parts: Node) -> Node:
    return Chain(parts, prod(part.count for part in parts))


def choice(*options: Node) -> Node:
    return Choice(options, sum(option.count for option in options))


def tree(expression: Expression, rules: Mapping[str, Sentence], within: tuple[str, ...] = ()) -> Node:
    """Converts hassil's expression. Raises ValueError for a rule that is unknown or refers to itself."""
    match expression:
        case TextChunk():
            return Text(expression.text)
        case ListReference():
            return Slot(expression.slot_name, expression.list_name)
        case RuleReference(rule_name=name):
            if name in within:
                raise ValueError(f"the rule <{name}> refers to itself")
            if name not in rules:
                raise ValueError(f'there is no rule <{name}> in "expansion_rules"')
            return tree(rules[name].expression, rules, (*within, name))
        case Permutation():
            if len(expression.items) > MAX_PERMUTED:
                raise ValueError(f"more than {MAX_PERMUTED} parts in any order (;) are too many")
            parts = [tree(item, rules, within) for item in expression.items]
            return choice(*(chain(*order) for order in permutations(parts)))
        case Alternative():
            return choice(*(tree(item, rules, within) for item in expression.items))
        case Group():
            return chain(*(tree(item, rules, within) for item in expression.items))
    raise ValueError(f"{type(expression).__name__} is not supported in a sentence")


def bare(text: str) -> str:
    """Returns only the letters and digits, which are what hassil compares."""
    return "".join(filter(str.isalnum, text.casefold()))


def could_read(node: Node, text: str) -> bool:
    """Whether bare text might be a reading, if every slot took any words. hassil needs 0.1 ms to say no, this 5 µs."""
    return len(text) in _ends(node, text, {0})


def _ends(node: Node, text: str, starts: set[int]) -> set[int]:
    """Returns where a reading of the node that begins at one of the starts can end."""
    match node:
        case Text():
            return {start + len(node.bare) for start in starts if text.startswith(node.bare, start)}
        case Slot():
            return set(range(min(starts), len(text) + 1))
        case Choice(options):
            return set[int]().union(*(_ends(option, text, starts) for option in options))
        case Chain(parts):
            for part in parts:
                if not starts:
                    break
                starts = _ends(part, text, starts)
            return starts


def bare_words(text: str) -> list[str]:
    return [word for word in map(bare, text.split()) if word]


def could_go_on(node: Node, words: Sequence[str]) -> bool:
    """Whether a reading begins with these bare words and continues with at least one word of the template itself.

    More words for a slot do not count, since any reading could continue that way.
    """
    return _passes(node, "".join(words), frozenset(accumulate(map(len, words))), {(0, False)})[1]


_Places = set[tuple[int, bool]]
"""Positions in bare text, each with whether a word of the template itself ends there."""


def _passes(node: Node, text: str, word_ends: frozenset[int], starts: _Places) -> tuple[_Places, bool]:
    """Returns where a reading of the node can end, and whether the text ends before a reading does."""
    match node:
        case Text(bare=own):
            ends = {(at + len(own), is_own or bool(own)) for at, is_own in starts if text.startswith(own, at)}
            return ends, any(len(own) > len(text) - at > 0 and own.startswith(text[at:]) for at, _ in starts)
        case Slot():
            first = min((at for at, _ in starts), default=len(text))
            return {(at, False) for at in word_ends if at > first}, False
        case Choice(options):
            passed = [_passes(option, text, word_ends, starts) for option in options]
            return set[tuple[int, bool]]().union(*(ends for ends, _ in passed)), any(stops for _, stops in passed)
        case Chain(parts):
            stops_within = False
            for part in parts:
                if not starts:
                    break
                stops_within |= (len(text), True) in starts and _says_something(part)
                starts, stops = _passes(part, text, word_ends, starts)
                stops_within |= stops
            return starts, stops_within


def openers(node: Node, chars: int) -> frozenset[str]:
    """Returns how readings begin, as bare text of at most `chars` letters; fewer where a slot follows."""
    return frozenset(opener for opener, _ in _openers(node, chars, {("", True)}))


def _openers(node: Node, chars: int, begun: set[tuple[str, bool]]) -> set[tuple[str, bool]]:
    """Extends the beginnings in `begun`. Each has a flag that says whether it can still be extended."""
    match node:
        case Text(bare=own):
            return {
                ((text + own)[:chars], len(text + own) < chars) if grows else (text, False) for text, grows in begun
            }
        case Slot():
            return {(text, False) for text, _ in begun}
        case Choice(options):
            return set[tuple[str, bool]]().union(*(_openers(option, chars, begun) for option in options))
        case Chain(parts):
            for part in parts:
                begun = _openers(part, chars, begun)
            return begun


def _says_something(node: Node) -> bool:
    match node:
        case Text(bare=own):
            return bool(own)
        case Slot():
            return True
        case Chain(parts) | Choice(parts):
            return any(map(_says_something, parts))


def placeholder(slot: Slot) -> str:
    return f"{{{slot.name}}}"


def sample(node: Node, limit: int, fill: Fill = placeholder) -> list[str]:
    """Returns at most `limit` readings, spread evenly over all of them, always the same ones."""
    if node.count <= limit:
        return [tidy(_pick(node, index, fill)) for index in range(node.count)]
    # A step without a common divisor visits every reading once; near the golden ratio it soon varies every part.
    step = int(node.count * GOLDEN) | 1
    while gcd(step, node.count) > 1:
        step += 1
    return [tidy(_pick(node, index * step % node.count, fill)) for index in range(limit)]


def _pick(node: Node, index: int, fill: Fill) -> str:
    match node:
        case Text(text):
            return text
        case Slot():
            return fill(node)
        case Chain(parts):
            picked = []
            for part in parts:
                index, own = divmod(index, part.count)
                picked.append(_pick(part, own, fill))
            return "".join(picked)
        case Choice(options):
            for option in options:
                if index < option.count:
                    return _pick(option, index, fill)
                index -= option.count
    raise IndexError(index)


def shortest(node: Node) -> str:
    """Returns the reading with the fewest words."""
    return tidy(_closest(node, lambda word: -1.0, frozenset())[1])


def nearest(node: Node, weigh: Callable[[str], float]) -> str:
    """Returns the reading with the highest total weight of its words. Each word counts once."""
    return tidy(_closest(node, weigh, frozenset())[1])


def _closest(node: Node, weigh: Callable[[str], float], used: frozenset[str]) -> tuple[float, str, frozenset[str]]:
    match node:
        case Text(text):
            total = 0.0
            for word in text.split():
                weight = weigh(word)
                total += -weight if weight > 0 and word in used else weight
                used |= {word}
            return total, text, used
        case Slot():
            return 0.0, placeholder(node), used
        case Chain(parts):
            total, texts = 0.0, []
            for part in parts:
                weight, text, used = _closest(part, weigh, used)
                total += weight
                texts.append(text)
            return total, "".join(texts), used
        case Choice(options):
            return max((_closest(option, weigh, used) for option in options), key=lambda weighed: weighed[0])


def plainest(node: Node) -> str:
    """Returns the reading to show as an example: without optional parts but articles, with the first of each
    alternative."""
    return _BEFORE_VOWEL.sub(r"\1n", tidy(_plainest(node)))


def _plainest(node: Node) -> str:
    match node:
        case Text(text):
            return text
        case Slot():
            return placeholder(node)
        case Chain(parts):
            return "".join(map(_plainest, parts))
        case Choice(options):
            first = _plainest(options[0])
            return first if Text("") not in options or first.strip() in _ARTICLES else ""


def slots(node: Node) -> Iterator[Slot]:
    match node:
        case Slot():
            yield node
        case Chain(parts) | Choice(parts):
            for part in parts:
                yield from slots(part)


def certain_slots(node: Node) -> frozenset[str]:
    """Returns the names of the slots that are in every reading."""
    match node:
        case Slot(name):
            return frozenset((name,))
        case Chain(parts):
            return frozenset().union(*map(certain_slots, parts))
        case Choice(options):
            return frozenset.intersection(*map(certain_slots, options))
    return frozenset()


def words(node: Node) -> Iterator[str]:
    """Yields the literal words of all readings, as in the template."""
    match node:
        case Text(text):
            yield from text.split()
        case Chain(parts) | Choice(parts):
            for part in parts:
                yield from words(part)


def required(node: Node, ignored: Container[str]) -> list[frozenset[str]]:
    """Returns sets of literal words, of each of which every reading has at least one. Ignored words are in none."""
    match node:
        case Text(text):
            return [frozenset((word.lower(),)) for word in text.split() if word.lower() not in ignored]
        case Chain(parts):
            return [clause for part in parts for clause in required(part, ignored)]
        case Choice(options):
            found = [required(option, ignored) for option in options]
            return [frozenset().union(*(clauses[0] for clauses in found))] if all(found) else []
    return []


def tidy(text: str) -> str:
    return " ".join(text.split())
