"""Follows the tutorial step by step: writes its files, runs its commands and compares their output."""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.terminal import Terminal

TUTORIAL = Path(__file__).parents[2] / "docs" / "guide" / "add-a-tool.md"
FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=ticks)$", re.MULTILINE | re.DOTALL)


@dataclass
class Newcomer:
    """A reader of the tutorial, with an empty folder and a terminal."""

    folder: Path

    def follow(self, info: str, body: str) -> list[str]:
        """Carries out one block, and returns what turned out differently."""
        match info.split():
            case [_, name]:
                path = self.folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(body)
                return []
            case ["console"]:
                return [wrong for command, expected in commands(body) if (wrong := self.run(command, expected))]
        return []

    def run(self, command: str, expected: str) -> str | None:
        shown = Terminal(self.folder).shell(command)
        text = shown.out + shown.err + (f"[exit {shown.code}]\n" if shown.code else "")
        lines = [".*".join(map(re.escape, line.split("…"))) for line in expected.splitlines()]
        seen = re.search(".*".join(lines), text, re.DOTALL)
        return None if seen else f"$ {command}\nshould show\n{expected}\nbut showed\n{text}"


def commands(body: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output below it."""
    parts = re.split(r"^\$ (.*)\n", body, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def test_following_the_tutorial_gives_what_it_shows(tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path)
    blocks = [(block["info"], block["body"]) for block in FENCE.finditer(TUTORIAL.read_text())]
    assert sum(info == "console" for info, _ in blocks) == 3
    wrong = [problem for info, body in blocks for problem in newcomer.follow(info, body)]
    assert not wrong, "\n\n".join(wrong)
