import pytest

from antiphon.tools.adapters import ADAPTERS
from tests.fakes.schemas import make_spec


def test_there_is_one_for_each_provider() -> None:
    assert set(ADAPTERS) == {"openai_chat", "openai_realtime", "gemini", "mcp"}


@pytest.mark.parametrize("provider", sorted(ADAPTERS))
def test_each_says_the_name_of_the_tool(provider: str) -> None:
    adapted = ADAPTERS[provider](make_spec())
    assert adapted.get("function", adapted)["name"] == "kb_search"
