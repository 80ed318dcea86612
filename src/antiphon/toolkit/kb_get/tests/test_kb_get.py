from pathlib import Path

from antiphon.authoring.testing import load_module, make_context
from antiphon.tools.capabilities.kb import FullRecord
from antiphon.tools.errors import ErrorType
from antiphon.tools.spec import Mode

handler = load_module(Path(__file__).parents[1])


class FakeKnowledge:
    async def get(self, id: str) -> FullRecord | None:
        if id != "doc:tea":
            return None
        return FullRecord(
            id=id,
            namespace="studio",
            type="doc",
            title="Tea",
            body="Tea is hot. " * 100,
            tags=("drinks",),
            source_type="text",
            source="/tea.txt",
            last_updated="2026-01-01T12:00:00Z",
            url=None,
            metadata={},
        )


async def test_the_whole_text_is_read_in_text_and_the_beginning_is_said() -> None:
    result = await handler.execute({"id": "doc:tea"}, make_context(granted={"kb": FakeKnowledge()}))
    assert len(result.data["full_text"]) == 1_200
    assert result.spoken.startswith("Tea: Tea is hot.")
    assert len(result.spoken) < 260


async def test_in_voice_only_the_beginning_is_read() -> None:
    result = await handler.execute({"id": "doc:tea"}, make_context(mode=Mode.VOICE, granted={"kb": FakeKnowledge()}))
    assert "full_text" not in result.data
    assert len(result.data["snippet"]) <= 501


async def test_an_unknown_record_is_not_found() -> None:
    result = await handler.execute({"id": "doc:milk"}, make_context(granted={"kb": FakeKnowledge()}))
    assert result.error.type is ErrorType.NOT_FOUND
