"""The page about the models says what the profiles say, and needs no provider's package."""

import subprocess
import sys

import pytest

from antiphon.models.base import Warmable
from antiphon.models.builtin import BuiltinModel
from antiphon.models.providers import gemini_profiles, realtime_profiles
from antiphon.models.providers.ollama import OllamaModel
from antiphon.models.providers.openai_compatible import OpenAICompatibleModel
from antiphon.models.providers.references import TEXT_PROVIDERS, Provider
from antiphon.models.reference import TEXT_KINDS, markdown

WITHOUT_PACKAGES = """
import sys
for name in ("google", "openai", "httpx2", "numpy", "soxr"):
    sys.modules[name] = None
from antiphon.models.reference import markdown
print(markdown())
"""


def find_row(first_cell: str) -> list[str]:
    line = next(line for line in markdown().splitlines() if line.startswith(f"| {first_cell} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_every_family_has_a_row() -> None:
    for prefix, kind in gemini_profiles.FAMILIES:
        row = find_row(f"`{prefix}`")
        assert row[1] == ("a turn" if kind.takes_turns else "realtime input")
        assert row[-1] == f"{kind.answer_within_s:g} s"
    for name, traits in realtime_profiles.TRAITS:
        assert find_row(f"`{name}`")[1:] == ["yes" if traits.reasons else "no"] * 2


def test_a_voice_models_row_is_its_profile() -> None:
    row = find_row("`gemini-live:NAME`")
    assert row[1:] == ["yes", "yes, 24,000 Hz", "yes", "no", "yes", "10 minutes", "131,072 tokens", "30", "yes"]
    assert find_row("`openai-realtime:NAME`")[5:8] == ["no", "60 minutes", "28,000 tokens"]


def test_every_column_of_every_table_is_explained() -> None:
    page = markdown()
    headers = [line for line, below in zip(page.splitlines(), page.splitlines()[1:], strict=False) if "|---" in below]
    names = [name.strip() for header in headers for name in header.strip("|").split("|")]
    assert len(headers) == 4
    assert [name for name in names if f"- **{name}**: " not in page] == []


def test_every_text_provider_has_a_row() -> None:
    assert {kind.provider for kind in TEXT_KINDS} == {Provider.BUILTIN, *TEXT_PROVIDERS}


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        (Provider.BUILTIN, BuiltinModel),
        (Provider.OPENAI, OpenAICompatibleModel),
        (Provider.OLLAMA, OllamaModel),
    ],
)
def test_the_warm_up_is_that_of_the_model(provider: Provider, model: type) -> None:
    told = next(kind.warm_up for kind in TEXT_KINDS if kind.provider is provider)
    assert (told == "yes") == issubclass(model, Warmable)


@pytest.mark.real_time
def test_the_page_is_made_without_the_packages_of_providers() -> None:
    made = subprocess.run([sys.executable, "-c", WITHOUT_PACKAGES], capture_output=True, text=True, check=False)
    assert (made.returncode, made.stdout.strip()) == (0, markdown().strip()), made.stderr
