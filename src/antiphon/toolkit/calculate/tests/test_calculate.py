"""What `calculate` answers, what it says, and what it does not understand."""

from typing import Any

import pytest

from antiphon.authoring.testing import make_context
from antiphon.toolkit.calculate.handler import execute
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import Failure, ToolResult


async def run(expression: str) -> ToolResult:
    return await execute({"expression": expression}, make_context("calculate"))


async def result_of(expression: str) -> Any:
    result = await run(expression)
    assert result.ok, result.error
    return result.data["result"]


async def refusal_of(expression: str) -> Failure:
    result = await run(expression)
    assert result.error is not None, f"{expression!r} gave {result.data}"
    return result.error


WRITTEN = [
    ("2+2", 4),
    ("2 + 3 * 4", 14),
    ("(2 + 3) * 4", 20),
    ("2(3+4)", 14),
    ("10 / 4", 2.5),
    ("10 / 5", 2),
    ("7 // 2", 3),
    ("-7 // 2", -4),
    ("17 % 5", 2),
    ("-7 % 3", 2),
    ("mod(17, 5)", 2),
    ("2**10", 1024),
    ("2^10", 1024),
    ("2**-1", 0.5),
    ("-2**2", -4),
    ("2**3**2", 512),
    ("4**0.5", 2),
    ("0**0", 1),
    ("0.1+0.2", 0.3),
    ("1/3*3", 1),
    ("1/3", 0.333333333333333),
    ("1.1*1.1", 1.21),
    ("1e3", 1000),
    ("1.5E3", 1500),
    (".5 + .5", 1),
    ("007 + 1", 8),
    ("1,024 * 2", 2048),
    ("1_000_000 + 1", 1000001),
    ("max(1,200)", 200),
    ("min(3, 1, 2)", 1),
    ("average(3, 4, 5)", 4),
    ("the sum of 3, 4 and 12.5", 19.5),
    ("2 times the sum of 3 and 4", 14),
    ("sum of one hundred and five, six", 111),
    ("the sum of minus 3 and 4", 1),
    ("add up 1 2 3", 6),
    ("add 5 to 10", 15),
    ("multiply 2, 3 and 4", 24),
    ("the mean of 1 and 2", 1.5),
    ("the difference between 4 and 10.5", 6.5),
    ("abs(-5)", 5),
    ("sqrt(16)", 4),
    ("sqrt(2)", 1.41421356237),
    ("sqrt(2)**2", 2),
    ("sqrt(1/4)", 0.5),
    ("sqrt 16 + 1", 5),
    ("cbrt(27)", 3),
    ("cbrt(-8)", -2),
    ("round(2.5)", 3),
    ("round(-2.5)", -3),
    ("round(2.675, 2)", 2.68),
    ("round(1234, -2)", 1200),
    ("floor(-1.5)", -2),
    ("ceil(1.2)", 2),
    ("sin(0)", 0),
    ("sin(pi)", 0),
    ("cos(pi)", -1),
    ("tan(pi/4)", 1),
    ("log(1000)", 3),
    ("log(8, 2)", 3),
    ("log10(0.01)", -2),
    ("log2(1024)", 10),
    ("ln(e)", 1),
    ("exp(0)", 1),
    ("factorial(5)", 120),
    ("5!", 120),
    ("2pi", 6.28318530718),
    ("3 sqrt(4)", 6),
    ("15%", 0.15),
    ("15% of 80", 12),
    ("15 % of 80", 12),
    ("50 + 10%", 55),
    ("50 - 10%", 45),
    ("10% + 10%", 0.2),
    ("100 / 10%", 1000),
    ("50% * 50%", 0.25),
    ("20% off 50", 40),
    ("20% more than 50", 60),
    ("-0.0", 0),
]

SAID = [
    ("forty two times seventeen", 714),
    ("a seventeen times six", 102),
    ("a hundred times six", 600),
    ("forty-two times seventeen", 714),
    ("fifteen percent of 80", 12),
    ("fifteen per cent of eighty", 12),
    ("square root of 2", 1.41421356237),
    ("the square root of nine plus one", 4),
    ("cube root of twenty seven", 3),
    ("two to the power of ten", 1024),
    ("two raised to the power of ten", 1024),
    ("two to the tenth", 1024),
    ("two to the third power", 8),
    ("5 to the 2nd", 25),
    ("ten to the minus three", 0.001),
    ("ten squared", 100),
    ("three cubed", 27),
    ("the square of five", 25),
    ("half of 90", 45),
    ("a third of 90", 30),
    ("two thirds of ninety", 60),
    ("three quarters of 100", 75),
    ("3 point 5 plus 2", 5.5),
    ("one hundred and five minus five", 100),
    ("a million divided by a thousand", 1000),
    ("two and a half times four", 10),
    ("ten over four", 2.5),
    ("minus five plus three", -2),
    ("seventeen mod five", 2),
    ("five factorial", 120),
    ("factorial of five", 120),
    ("absolute value of minus 5", 5),
    ("cosine of pi", -1),
    ("natural log of e", 1),
    ("log base 2 of 8", 3),
    ("twenty percent off fifty", 40),
    ("100 plus twenty percent", 120),
    ("15 percent tip on 60", 9),
    ("six x seven", 42),
    ("fifteen by twelve", 180),
    ("two plus two equals", 4),
    ("9 times 9 again", 81),
    ("double 37", 74),
    ("triple 15", 45),
    ("twice eight", 16),
    ("subtract 5 from 20", 15),
    ("multiply 6 by 7", 42),
    ("divide 100 by 8", 12.5),
    ("three hundred and forty five plus sixty seven", 412),
    ("two to the 10th power", 1024),
    ("the remainder when 17 is divided by 5", 2),
    ("remainder of 17 divided by 5", 2),
    ("round 3.14159 to two decimals", 3.14),
    ("round 2.5", 3),
    ("round 1250 to the nearest hundred", 1300),
    ("round 3.2 up", 4),
    ("what percent of 80 is 20", 25),
    ("20 is what percent of 80", 25),
    ("20 out of 80 as a percentage", 25),
    ("from 80 to 100 is how many percent", 25),
    ("percentage decrease from 100 to 75", -25),
    ("split 86.40 with a 20 percent tip between three", 34.56),
    ("6 x 7", 42),
    ("what is 2 plus 2?", 4),
    ("how much is 2 plus 2", 4),
    ("What's 12 times 12 equal?", 144),
    ("calculate 7 times 6 please", 42),
]

LOOK_ALIKES = [
    ("3×4÷2−1", 5),
    ("2²", 4),
    ("10⁻²", 0.01),
    ("√16", 4),
    ("√(9+16)", 5),
    ("∛27", 3),
    ("2½ + 1", 3.5),
    ("½ of 10", 5),
    ("１２＋３", 15),
    ("٣ + ٤", 7),
    ("π − π", 0),
    ("（１＋２）＊３", 9),
    ("15％ of 80", 12),
]


@pytest.mark.parametrize(("expression", "expected"), WRITTEN)
async def test_written_expressions_are_evaluated(expression: str, expected: float) -> None:
    assert await result_of(expression) == expected


@pytest.mark.parametrize(("expression", "expected"), SAID)
async def test_expressions_in_words_are_evaluated(expression: str, expected: float) -> None:
    assert await result_of(expression) == expected


@pytest.mark.parametrize(("expression", "expected"), LOOK_ALIKES)
async def test_operators_and_digits_of_other_keyboards_are_accepted(expression: str, expected: float) -> None:
    assert await result_of(expression) == expected


@pytest.mark.parametrize("expression", ["2+2", "sqrt(2)**2", "round(1.5)", "floor(2.5)", "4**0.5", "sin(pi)"])
async def test_a_whole_result_is_an_integer(expression: str) -> None:
    assert type(await result_of(expression)) is int


async def test_a_whole_number_that_javascript_would_change_is_a_string() -> None:
    assert await result_of("2**53") == 2**53
    assert await result_of("2**53 + 1") == str(2**53 + 1)


async def test_a_number_beyond_floating_point_is_a_string() -> None:
    assert await result_of("(10**400 + 1) / 3") == "3.33333333333333E+399"
    assert await result_of("1 / 10**400") == "1E-400"


async def test_the_expression_is_returned_as_understood() -> None:
    result = await run("what is fifteen percent of eighty plus 2pi?")
    assert result.data["expression"] == "percent(15) * 80 + 2 * pi"


SPOKEN = [
    ("15% of 80", "15 percent of 80 is 12."),
    ("42*17", "42 times 17 is 714."),
    ("1/3", "1 divided by 3 is about 0.333."),
    ("sqrt(2)", "The square root of 2 is about 1.414."),
    ("10**2", "10 squared is 100."),
    ("2**10", "2 to the power of 10 is 1,024."),
    ("2**100", "2 to the power of 100 is about 1.27 times 10 to the 30."),
    ("5 - 8", "5 minus 8 is minus 3."),
    ("2 + 3 * 4", "2 plus 3 times 4 is 14."),
    ("factorial(5)", "5 factorial is 120."),
    ("20% off 50", "50 minus 20 percent is 40."),
    ("17 mod 5", "17 modulo 5 is 2."),
    ("2 * -3", "2 times minus 3 is minus 6."),
]


@pytest.mark.parametrize(("expression", "sentence"), SPOKEN)
async def test_the_question_is_repeated_with_the_answer(expression: str, sentence: str) -> None:
    assert (await run(expression)).spoken == sentence


@pytest.mark.parametrize(
    "expression",
    ["2 * (3 + 4)", "sqrt(2)**2", "(1 + 2) ** 2", "max(1, 2)", "3.14159265 * 2", "8", "+".join(["100"] * 30)],
)
async def test_a_question_that_is_unclear_when_spoken_is_not_repeated(expression: str) -> None:
    assert ((await run(expression)).spoken or "").startswith("That makes ")


UNREAL = [
    ("1/0", "divided by zero"),
    ("5 % 0", "divided by zero"),
    ("5 // 0", "divided by zero"),
    ("mod(5, 0)", "divided by zero"),
    ("0**-1", "divided by zero"),
    ("0**-0.5", "divided by zero"),
    ("(-8)**0.5", "no real value"),
    ("sqrt(-1)", "no real square root"),
    ("log(0)", "above zero"),
    ("ln(-1)", "above zero"),
    ("log(5, 1)", "base of 1"),
    ("tan(pi/2)", "have a tangent"),
    ("factorial(-1)", "factorial"),
    ("factorial(2.5)", "factorial"),
    ("round(1, 0.5)", "whole number of digits"),
]


@pytest.mark.parametrize(("expression", "reason"), UNREAL)
async def test_an_expression_without_a_real_value_is_refused_with_the_reason(expression: str, reason: str) -> None:
    failure = await refusal_of(expression)
    assert failure.type is ErrorType.VALIDATION
    assert reason in failure.message


NOT_UNDERSTOOD = [
    ("banana + 1", '"banana"'),
    ("50 apples", '"apples"'),
    ("nan", '"nan"'),
    ("inf - inf", '"inf"'),
    ("2j * 2j", '"j"'),
    ("True", '"true"'),
    ("'a' * 3", 'the sign "\'"'),
    ("x", '"x"'),
    ("().__class__", 'the sign "."'),
    ("[1, 2][0]", 'the sign "["'),
    ("1 if 1 else 2", '"if"'),
    ("round(1, ndigits=2)", '"ndigits"'),
    ("1 << 10", 'the sign "<"'),
    ("5 & 3", 'the sign "&"'),
    ("1 2", "1 and 2 side by side"),
    ("1.2.3", "1.2 and .3 side by side"),
    ("2 +", "make sense"),
    ("sqrt", "make sense"),
    ("()", "numbers"),
    ("1, 2", "numbers"),
    ("sqrt(1, 2)", "sqrt takes 1 number, not 2"),
    ("round(1, 2, 3)", "round takes 1 to 2 numbers, not 3"),
    ("?", "nothing to calculate"),
    ("   ", "nothing to calculate"),
    ("\x00", "a sign"),
    ("\ud800", "a sign"),
]


@pytest.mark.parametrize(("expression", "reason"), NOT_UNDERSTOOD)
async def test_text_that_is_not_arithmetic_is_named(expression: str, reason: str) -> None:
    failure = await refusal_of(expression)
    assert failure.type is ErrorType.VALIDATION
    assert reason in failure.message
    assert failure.suggestion is not None


@pytest.mark.parametrize(
    ("said", "spoken"),
    [
        ("15 percent tip on 48 dollars 50", "A 15 percent tip is 7.28 dollars, which makes 55.78 dollars in all."),
        ("18% tip on a $42 bill", "An 18 percent tip is 7.56 dollars, which makes 49.56 dollars in all."),
        ("tip on 60 euros", "A 15 percent tip is 9 euros, which makes 69 euros in all."),
        ("split 120 dollars four ways", "That's 30 dollars each."),
        ("split a bill of 100 pounds between three people", "That's 33.33 pounds each."),
        ("split 90 with a 20 percent tip by 2", "That's 54 each, with the tip."),
        ("20 percent off 80 dollars", "80 minus 20 percent is 64 dollars."),
        ("2 dollars minus 1 dollar", "2 minus 1 is 1 dollar."),
        ("100 yen divided by 3", "100 divided by 3 is 33 yen."),
        ("half of 90", "Half of 90 is 45."),
        ("20 is what percent of 80", "20 is 25 percent of 80."),
        ("percent change from 100 to 80", "From 100 to 80 is a decrease of 20 percent."),
    ],
)
async def test_money_and_percentages_are_told_as_people_think_of_them(said: str, spoken: str) -> None:
    assert (await run(said)).spoken == spoken


async def test_the_currency_is_in_the_data() -> None:
    assert (await run("$10 plus 5%")).data == {"expression": "10 + percent(5)", "result": 10.5, "currency": "dollars"}


@pytest.mark.parametrize("said", ["5 dollars plus 3 euros", "percent change from 0 to 5", "split 10 dollars 0 ways"])
async def test_what_has_no_answer_is_refused(said: str) -> None:
    await refusal_of(said)


async def test_an_absurd_bill_is_still_a_number() -> None:
    assert (await run(f"split {'9' * 60} dollars 3 ways")).ok
