from antiphon.authoring.testing import make_context
from antiphon.toolkit.flip_coin.handler import execute


async def test_both_sides_come_up_about_equally_often() -> None:
    context = make_context(seed=1)
    heads = [(await execute({}, context)).data["result"] for _ in range(1_000)].count("heads")
    assert 450 < heads < 550


async def test_the_same_seed_gives_the_same_side() -> None:
    first, second = [await execute({}, make_context(seed=3)) for _ in range(2)]
    assert first == second


async def test_the_side_is_said() -> None:
    result = await execute({}, make_context())
    assert result.spoken == f"It's {result.data['result']}."
