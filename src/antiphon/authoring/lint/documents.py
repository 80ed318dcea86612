"""Checks doc_summary.md and doc.md: their length, the seven sections, and whether the examples are valid."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from antiphon.authoring.problems import Place, Problem, did_you_mean
from antiphon.tools.arguments import Arguments
from antiphon.tools.source import parse_json

SUMMARY_CHARACTERS: Final = 250
SUMMARY_LINES: Final = range(2, 5)
SECTIONS: Final = (
    "Summary",
    "Preconditions",
    "Postconditions",
    "Invariants",
    "Failure Modes",
    "Examples",
    "Common Mistakes",
)
EXAMPLES: Final = "Examples"
ARGS_FENCE: Final = "args"


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class Example:
    """The content of an `args` fence."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    sections: tuple[Section, ...]
    examples: tuple[Example, ...]

    def body(self, title: str) -> str:
        return next((section.body for section in self.sections if section.title == title), "")


def parse(text: str) -> Document:
    """Finds level-2 headings and `args` fences. A line inside a fence is never a heading."""
    sections: list[tuple[str, list[str]]] = []
    examples: list[Example] = []
    fence = info = ""
    inside: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if fence:
            if bare.startswith(fence) and not bare.strip(fence[0]):
                if info == ARGS_FENCE:
                    examples.append(Example(number - len(inside), "\n".join(inside)))
                fence = ""
            inside.append(line)
        elif bare.startswith(("```", "~~~")):
            info = bare.lstrip(bare[0]).strip()
            fence = bare[: len(bare) - len(bare.lstrip(bare[0]))]
            inside = []
        elif line.startswith("## "):
            sections.append((_title(line), []))
            continue
        if sections:
            sections[-1][1].append(line)
    return Document(
        tuple(Section(title, "\n".join(lines).strip()) for title, lines in sections),
        tuple(examples),
    )


def check_summary(at: Place, summary: str) -> Iterator[Problem]:
    if not summary:
        yield at.error("", "is empty")
        return
    if len(summary) > SUMMARY_CHARACTERS:
        yield at.error(
            "", f"has {len(summary)} characters; at most {SUMMARY_CHARACTERS} are allowed, since every prompt has it"
        )
    lines = len(summary.splitlines())
    if lines not in SUMMARY_LINES:
        yield at.warning("", f"has {lines} line{'s' * (lines > 1)}; 2 to 4 are best")


def check_document(at: Place, document: Document, arguments: Arguments | None) -> Iterator[Problem]:
    """Checks doc.md. Without `arguments` (the schema is broken) the examples are only parsed."""
    yield from _check_sections(at, document)
    for example in document.examples:
        yield from _check_example(at, example, arguments)
    if not document.examples and document.body(EXAMPLES):
        yield at.warning(EXAMPLES, "no example has its arguments in an ```args fence, so none can be checked")


def _title(heading: str) -> str:
    """Returns the title without closing hashes, and without what an author adds in parentheses."""
    title = heading.strip("# \t")
    return title.partition(" (")[0] if title.endswith(")") else title


def _check_sections(at: Place, document: Document) -> Iterator[Problem]:
    titles = [section.title for section in document.sections]
    for title in SECTIONS:
        if title not in titles:
            others = [other for other in titles if other not in SECTIONS]
            hint = did_you_mean(title, others).replace("Did you mean", "Is it")
            yield at.error(title, f'the section "## {title}" is missing.{hint}')
        elif titles.count(title) > 1:
            yield at.error(title, f"the section appears {titles.count(title)} times")
        elif not document.body(title):
            yield at.error(title, "the section is empty")
    found = list(dict.fromkeys(title for title in titles if title in SECTIONS))
    expected = [title for title in SECTIONS if title in found]
    if found != expected:
        title = next(title for title, other in zip(found, expected, strict=True) if title != other)
        yield at.error(title, f"the section is out of order; the order is {', '.join(SECTIONS)}")


def _check_example(at: Place, example: Example, arguments: Arguments | None) -> Iterator[Problem]:
    field = f"line {example.line}"
    try:
        args = parse_json(example.text.encode())
    except ValueError as error:
        yield at.error(field, f"the arguments are not JSON: {error}")
        return
    if not isinstance(args, dict):
        yield at.error(field, "the arguments are not a JSON object")
    elif arguments is not None:
        filled, _ = arguments.complete(args)
        for problem in arguments.problems(filled):
            yield at.error(field, f"the arguments would be refused: {problem['path']}: {problem['message']}")
