from collections.abc import Sequence
from pathlib import Path

import pytest

from antiphon.authoring.testing import load_module, make_context
from antiphon.tools.capabilities.kb import StoredLink
from antiphon.tools.errors import ErrorType

handler = load_module(Path(__file__).parents[1])

ADA = StoredLink("person:ada", "Ada Byron", "https://www.linkedin.com/in/ada")
BOB = StoredLink("person:bob", "Bob Byron", "https://www.linkedin.com/in/bob")


class FakeKnowledge:
    def __init__(self, *links: StoredLink) -> None:
        self.links = links

    async def find_links(self, name: str, host: str) -> Sequence[StoredLink]:
        return self.links if host == "linkedin.com" else ()


@pytest.mark.parametrize(
    ("links", "said"),
    [
        ((ADA,), "Ada Byron is on LinkedIn at https://www.linkedin.com/in/ada."),
        ((ADA, BOB), "I have LinkedIn links for Ada Byron and Bob Byron. Whose do you want?"),
    ],
)
async def test_stored_links_are_told(links: tuple[StoredLink, ...], said: str) -> None:
    result = await handler.execute({"name": "Byron"}, make_context(granted={"kb": FakeKnowledge(*links)}))
    assert result.spoken == said
    assert [match["url"] for match in result.data["matches"]] == [link.url for link in links]


async def test_without_a_stored_link_none_is_made_up() -> None:
    result = await handler.execute({"name": "Byron"}, make_context(granted={"kb": FakeKnowledge()}))
    assert result.error.type is ErrorType.NOT_FOUND
    assert result.error.message == "I have no LinkedIn link for Byron."
