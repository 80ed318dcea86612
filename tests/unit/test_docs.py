"""The settings in the documentation are valid."""

import re
import tomllib
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from antiphon.compose import TOOLKIT
from antiphon.config import Section, Settings, load
from antiphon.models.providers.references import parse
from tests.fakes.tree import ROOT

PAGES = sorted((ROOT / "docs" / "providers").glob("*.md"))
LINKING_PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FILE_SETTING = "instructions_file"
"""It takes the place of `instructions`, so only one of them can be set."""
BLOCKS = [
    pytest.param(block, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE), 1)
]


@pytest.mark.parametrize("block", BLOCKS)
def test_the_settings_of_a_page_are_accepted(tmp_path: Path, block: str) -> None:
    (tmp_path / "antiphon.toml").write_text(block)
    settings = load(None, {}, tmp_path)
    assert settings.given
    assert str(parse(settings.model.text)) == settings.model.text


@pytest.mark.parametrize("page", LINKING_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target, _, heading in (
        link.partition("#") for link in re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text())
    ):
        linked = (page.parent / target) if target else page
        assert linked.exists(), target
        headings = re.findall(r"^#+ (.+)$", linked.read_text(), re.MULTILINE) if heading else []
        assert not heading or heading in [re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings]


def test_the_readme_has_every_setting_with_its_default(tmp_path: Path) -> None:
    block = re.search(r"^## Settings.*?^```toml\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    assert block is not None
    written = tomllib.loads(block[1])
    settings = Settings(tmp_path, tmp_path)
    sections = {each.name: getattr(settings, each.name) for each in fields(settings)}
    defaults = {
        name: each.model_dump(mode="json", by_alias=True)
        for name, each in sections.items()
        if isinstance(each, Section)
    }
    del defaults["assistant"][FILE_SETTING]
    assert written == defaults


TOOLS = {directory.name for directory in TOOLKIT.iterdir() if (directory / "schema.json").exists()}
TOOL_PREFIXES = {name.partition("_")[0] for name in TOOLS if "_" in name}
NAME = re.compile(r"[a-z]+(?:_[a-z0-9]+)+")


@cache
def names_in_code() -> frozenset[str]:
    """All names in the code outside the tools: messages, fields, functions and settings."""
    files = [file for file in (ROOT / "src").rglob("*.py") if TOOLKIT not in file.parents]
    return frozenset(name for file in files for name in NAME.findall(file.read_text()))


@pytest.mark.parametrize("page", LINKING_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tools_that_a_page_mentions_exist(page: Path) -> None:
    """A name in code font that begins like a tool's, such as `list_…`, must be a tool, unless the code has it."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    mentioned = {name for name in re.findall(rf"`({NAME.pattern})`", text) if name.partition("_")[0] in TOOL_PREFIXES}
    unknown = mentioned - TOOLS
    assert not unknown or unknown <= names_in_code()


def test_the_page_about_the_toolkit_has_every_tool() -> None:
    page = (ROOT / "docs" / "toolkit.md").read_text()
    assert sorted(name for name in TOOLS if f"`{name}`" not in page) == []
