import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.speech.spoken import speakable
from antiphon.speech.spoken.markup import CODE_SHOWN

PIECES = (
    *"abIT.,:;!?…—-()[]{}\"'`~*#|\n 1590$€@/\\<>^=+&%°²½x_",
    *(
        "and ",
        "Dr. ",
        "e.g. ",
        "No. ",
        "U.S. ",
        " - ",
        "```",
        "\n\n",
        "https://",
        "www.",
        "a@b.c",
        " km",
        "GB",
        "10:05",
    ),
    *(
        "2024-05-01",
        "May ",
        "the ",
        "0s",
        "M ",
        "$5",
        "1/2",
        "&amp;",
        "->",
        "...",
        "😀",
        "- ",
        "1. ",
        "# ",
        "> ",
        "[a](b)",
    ),
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=60)


def check(text: str, spoken: str) -> None:
    assert speakable(text) == spoken


@pytest.mark.parametrize(
    "text",
    [
        "Hello, world!",
        "It's 10:30, and 50 % of 1,234.5 is 617.25.",
        "2 + 3 = 5, and “that” is (well) fine — isn't it?",
        "The 22nd of May, at 9 a.m. on a Monday; NASA's well-known API.",
        "I walked 5 in a row.",
        "They said",
    ],
)
def test_text_that_voices_read_well_is_unchanged(text: str) -> None:
    check(text, text)


@pytest.mark.parametrize(
    "text", ["", "  \n ", "---", "***", "```", "🎉👍🏽", "| --- | --- |", "...", "\x00", "\ud800", "()"]
)
def test_unspeakable_text_is_dropped_or_described(text: str) -> None:
    assert speakable(text) in ("", CODE_SHOWN)


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("# The title", "The title."),
        ("Title\n=====\nText here", "Title. Text here"),
        ("**Bold**, _italic_, ***both***, ~~gone~~ and `code`.", "Bold, italic, both, gone and code."),
        ("**half of it", "half of it"),
        ('See [the page](https://example.com/a_(b) "T").', "See the page."),
        ("See [the page][1], really.[2][^3]", "See the page, really."),
        ("![A cat](cat.png) sleeps", "A cat sleeps"),
        ("- Apples\n- [x] Pears!\n* plums,\n", "Apples. Pears! plums,"),
        ("1. One\n2) Two", "One. Two."),
        ("> A quote\n> goes on", "A quote goes on"),
        ("| Name | Age |\n|------|----:|\n| Joe  | 42 |", "Name, Age. Joe, 42."),
        ("Look:\n\n```python\nprint(1)\n```\n\nGood.", f"Look: {CODE_SHOWN} Good."),
        ("~~~\nx\n~~~\n```\ny", CODE_SHOWN),
        ("Call `getUserName(first_name)` of `os.path`.", "Call get User Name first name of os dot path."),
        ("one<br>two <b>three</b> &amp; four&nbsp;five", "one two three & four five"),
        ("First line\nSecond line", "First line. Second line"),
        ("a line that\ngoes on", "a line that goes on"),
        ("snake_case and *stars", "snake case and stars"),
    ],
)
def test_markup_is_not_read(text: str, spoken: str) -> None:
    check(text, spoken)


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("Done ✅ 🎉👨‍👩‍👧!", "Done!"),
        ("1️⃣ first", "1 first"),
        ("zero\u200bwidth \u202eback", "zerowidth back"),
        ("© 2024, 90°", "© 2024, 90 degrees"),
    ],
)
def test_pictures_are_dropped(text: str, spoken: str) -> None:
    check(text, spoken)


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("See https://www.example.com/a/b?c=d#e.", "See example dot com."),
        ("See example.com/help, or docs.example.com/a/b.html.", "See example dot com, or docs dot example dot com."),
        ("Version 1.2.3 of IPv6 at 192.168.1.1", "Version 1 dot 2 dot 3 of IPv6 at 192 dot 168 dot 1 dot 1"),
        ("Call 555.123.4567 about v2.0.1.", "Call 5 5 5, 1 2 3, 4 5 6 7 about v2 dot 0 dot 1."),
        ("(http://localhost:8000/x)", "(localhost)"),
        ("www.my-site.co.uk, <https://a.b/c>!", "my dash site dot co dot uk, a dot b!"),
        ("joe.smith_1@example.com", "joe dot smith underscore 1 at example dot com"),
        ("I've opened docs.python.org on the page.", "I've opened docs dot python dot org on the page."),
        ("I've opened my-site.example.", "I've opened my dash site dot example."),
        ("I've opened 2001:db8::1 on the page.", "I've opened a numeric address on the page."),
        ("Run main.py at 10:30:15, i.e. now.", "Run main dot py at 10:30:15, that is now."),
        ("Call 555-1234.", "Call 5 5 5, 1 2 3 4."),
        ("(555) 123-4567", "5 5 5, 1 2 3, 4 5 6 7"),
        ("+1 555 123 4567", "plus 1, 5 5 5, 1 2 3, 4 5 6 7"),
    ],
)
def test_addresses_are_spoken_so_that_they_can_be_written_down(text: str, spoken: str) -> None:
    check(text, spoken)


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("5 km, 1 km, 3kg", "5 kilometers, 1 kilometer, 3 kilograms"),
        ("a 5-km run", "a 5 kilometer run"),
        ("20°C, -5 °C, 68°F", "20 degrees Celsius, -5 degrees Celsius, 68 degrees Fahrenheit"),
        ("100 km/h, 1 mph, 5 m²", "100 kilometers per hour, 1 mile per hour, 5 square meters"),
        ("16 GB at 2.5 GHz, 100 Mbps", "16 gigabytes at 2.5 gigahertz, 100 megabits per second"),
        ("6 ft, 5'10\"", "6 feet, 5 foot 10"),
        ("2h 30 min 5s", "2 hours 30 minutes 5 seconds"),
        ("2 tbsp of oil, 1 tsp of salt", "2 tablespoons of oil, 1 teaspoon of salt"),
        ("1.5M users, 1920x1080, 3 x 4", "1.5 million users, 1920 by 1080, 3 times 4"),
        ("5 kg/day, 3 times/week", "5 kilograms per day, 3 times per week"),
    ],
)
def test_measures_are_spoken_in_full(text: str, spoken: str) -> None:
    check(text, spoken)


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("€4.99", "4 euros 99"),
        ("$1,200 or $1.00", "1,200 dollars or 1 dollar"),
        ("$0.99, -$5, US$7", "99 cents, minus 5 dollars, 7 dollars"),
        ("$1.5 billion, £3k, $5M", "1.5 billion dollars, 3 thousand pounds, 5 million dollars"),
        ("5 €, 4 USD, $4.5", "5 euros, 4 dollars, 4.5 dollars"),
        ("$3-$5 / month", "3 dollars to 5 dollars per month"),
    ],
)
def test_money_is_spoken_in_full(text: str, spoken: str) -> None:
    check(text, spoken)


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("2024-05-01", "May 1st, 2024"),
        ("2024-05-01T09:30:00Z", "May 1st, 2024 at 9:30"),
        ("2024-13-45", "2024-13-45"),
        ("05/01/2024, 25/12/2026", "May 1st, 2024, December 25th, 2026"),
        ("Jan. 5, Dec 25, May 1, 2024", "January 5th, December 25th, May 1st, 2024"),
        ("the 1990s, the 80s, '90s, 2000s", "the 19 nineties, the eighties, nineties, two thousands"),
        ("10:05, 12:00, 9:00 am, 99:99", "10 oh 5, 12 o’clock, 9 am, 99:99"),
        ("It opens at 9:00 a.m. on Mondays.", "It opens at 9 a.m. on Mondays."),
    ],
)
def test_dates_and_times_are_spoken_as_people_say_them(text: str, spoken: str) -> None:
    check(text, spoken)


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("3-5 days, 3 - 5, 3–5 km", "3 to 5 days, 3 to 5, 3 to 5 kilometers"),
        ("5 - 3 = 2", "5 minus 3 = 2"),
        ("1-2-3", "1-2-3"),
        ("1/2, 3/4, 2 1/2, 2/3", "one half, three quarters, 2 and a half, two thirds"),
        ("24/7, 9/11", "24 7, 9/11"),
        ("3*4, .5, x², x^2", "3 times 4, 0.5, x squared, x to the 2"),
        ("#5, ~5, C#, #tag", "number 5, about 5, C sharp, tag"),
        ("a → b, a -> b, a > b", "a to b, a to b, a is more than b"),
        ("and/or, he/she, w/ it, TCP/IP", "and or, he or she, with it, TCP/IP"),
        ("wait... what? Well… Then", "wait, what? Well. Then"),
        ("this - that -- those", "this, that, those"),
    ],
)
def test_symbols_are_spoken_as_words(text: str, spoken: str) -> None:
    check(text, spoken)


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("Mr. Smith met Dr. Who in St. Louis", "Mister Smith met Doctor Who in Saint Louis"),
        ("e.g. Apples vs. pears, i.e. No. 5", "for example Apples versus pears, that is number 5"),
        ("George W. Bush of the U.S. Army", "George W Bush of the U S Army"),
        ("He lives in the U.S.", "He lives in the U S."),
        ("VS Code, Gen Z", "VS Code, Gen Z"),
    ],
)
def test_an_abbreviation_does_not_end_the_sentence(text: str, spoken: str) -> None:
    check(text, spoken)


@given(TEXTS)
def test_converting_spoken_text_again_changes_nothing(text: str) -> None:
    spoken = speakable(text)
    assert speakable(spoken) == spoken


@given(TEXTS)
def test_no_visual_markup_is_left(text: str) -> None:
    assert not set("*`|#~\n\x00") & set(speakable(text))


@pytest.mark.parametrize(
    "hostile",
    [
        *(
            ".",
            "(",
            "[",
            "[a](",
            "[](a",
            "`",
            "```\n",
            "**a",
            "_a",
            "x",
            " ",
            "\n",
            "- ",
            "> ",
            "| a ",
            "<a",
            "a@",
            "a.",
        ),
        *("www.", "https://", "5", "5-", "5,", "5:", "1/2 ", "$5", "5 km", "2024-05-01", "555-", "Mr. ", "U.S."),
        *("A. ", "...", "->", "^(", "aa/", "&amp;", "😀", "\\", "()", "a  b"),
    ],
)
def test_hostile_text_takes_no_longer_than_other_text(hostile: str) -> None:
    text = hostile * (25_000 // len(hostile))
    start_s = time.process_time()
    speakable(f"a{' ' * 10_000}{text}")
    # Three times what the slowest of them takes. A time that grows with the square of the length is longer.
    assert time.process_time() - start_s < 1.5
