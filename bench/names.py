"""Counts how many names our recogniser gets right if it expects them, and what that does to other sentences.

README.md says what is compared.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Final

from rich.console import Console
from rich.progress import track
from rich.table import Table

# `make bench` runs this file by its path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from antiphon.config import load
from antiphon.speech.engines.moonshine.files import find_files
from antiphon.speech.engines.moonshine.model import Moonshine
from antiphon.speech.engines.moonshine.recognizer import transcribe
from bench.speech.clips import FLITE, JOE, Clip, MissingProgram, make_clip
from bench.speech.sentences import make_sentences
from bench.speech.words import count_errors, normalize

VOICES: Final = (*FLITE, JOE)
OTHER_SENTENCES: Final = 25

LISTS: Final = (
    *("packing", "camping", "wishlist", "Costco", "Ikea", "Kyoto trip", "Aldi", "allotment", "Zelda quests"),
    *("birthday gifts", "Hornbach", "Oma's recipes"),
)
ITEMS: Final = (
    *("quinoa", "gochujang", "oat milk", "paneer", "tahini", "Nespresso capsules", "halloumi", "Tupperware"),
    *("kombucha", "za'atar", "Pampers", "harissa"),
)
TITLES: Final = (
    *("Kubernetes runbook", "Okonkwo", "Acme rollout plan", "Siobhan Reilly", "Quarkus migration", "Nguyen Logistics"),
    *("Zephyr onboarding", "Bauhaus lease", "Tjaden", "Fjord analytics", "Villeneuve budget", "Bjorn Aldersson"),
)
EVERYDAY: Final = tuple(
    f"{subject} {kind}"
    for subject in ("Annual", "Budget", "Travel", "Security", "Team", "Product", "Sales", "Design", "Garden", "Kitchen")
    for kind in ("report", "policy", "handbook", "notes", "overview", "review", "checklist", "meeting", "plan", "guide")
)
SAID: Final = {
    "lists": (LISTS, ("Add milk to my {} list.", "What's on my {} list?")),
    "items": (ITEMS, ("Put {} on my shopping list.", "Take {} off the list.")),
    "titles": (TITLES, ("What do my notes say about the {}?",)),
}
EXPECTED: Final = {
    "nothing": (),
    "the names": (*LISTS, *ITEMS, *TITLES),
    "the names and 100 titles of everyday words": (*LISTS, *ITEMS, *TITLES, *EVERYDAY),
}


@dataclass(frozen=True, slots=True)
class NamedClip:
    kind: str
    name: str
    clip: Clip


def has_name(text: str, name: str) -> bool:
    return f" {' '.join(normalize(name))} " in f" {' '.join(normalize(text))} "


def recognize(model: Moonshine, clip: Clip, expected: Sequence[str]) -> str:
    return transcribe(model, clip.pcm, Event(), model.expect(expected))


def main() -> int:
    console = Console()
    models_dir = load(None).models_dir
    try:
        named = [
            NamedClip(kind, name, make_clip(sentence.format(name), voice, models_dir))
            for kind, (names, sentences) in SAID.items()
            for name in names
            for sentence in sentences
            for voice in VOICES
        ]
        others = [make_clip(text, voice, models_dir) for text in make_sentences(OTHER_SENTENCES, 1) for voice in VOICES]
    except MissingProgram as error:
        console.print(f"[red]crashed[/] {error}", soft_wrap=True)
        return 1
    model = Moonshine(find_files(models_dir))
    table = Table("expected", *SAID, "wrong words of other sentences")
    for label, expected in EXPECTED.items():
        right = dict.fromkeys(SAID, 0)
        for each in track(named, label, console=console, transient=True):
            right[each.kind] += has_name(recognize(model, each.clip, expected), each.name)
        wrong = sum(count_errors(clip.text, recognize(model, clip, expected)) for clip in others)
        counts = [f"{right[kind]}/{sum(each.kind == kind for each in named)}" for kind in SAID]
        table.add_row(label, *counts, f"{wrong}/{sum(len(normalize(clip.text)) for clip in others)}")
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
