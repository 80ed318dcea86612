"""The settings in the documentation are valid."""

import re
from pathlib import Path

import pytest

from antiphon.config import load
from antiphon.models.providers.references import parse
from tests.fakes.tree import ROOT

PAGES = sorted((ROOT / "docs" / "providers").glob("*.md"))
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target, _, heading in (
        link.partition("#") for link in re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text())
    ):
        linked = (page.parent / target) if target else page
        assert linked.is_file()
        headings = re.findall(r"^#+ (.+)$", linked.read_text(), re.MULTILINE)
        assert not heading or heading in [re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings]
