import pytest
from hassil import parse_sentence

from antiphon.sentences.readings import (
    Node,
    bare_words,
    certain_slots,
    could_go_on,
    nearest,
    openers,
    plainest,
    sample,
    shortest,
    slots,
    tree,
)

RULES = {"greet": parse_sentence("(hello|good (morning|evening))")}


def read(template: str) -> Node:
    return tree(parse_sentence(template).expression, RULES)


@pytest.mark.parametrize(
    ("template", "readings"),
    [
        ("tell me", ["tell me"]),
        ("[please] go", ["please go", "go"]),
        ("joke[s]", ["joke", "jokes"]),
        ("(a|b) {x}", ["a {x}", "b {x}"]),
        ("<greet> you", ["good evening you", "good morning you", "hello you"]),
        ("(now;here) it is", ["here now it is", "now here it is"]),
    ],
)
def test_all_readings_of_a_small_template_are_sampled(template: str, readings: list[str]) -> None:
    assert sorted(set(sample(read(template), 10))) == sorted(readings)


def test_a_few_readings_of_a_large_template_show_all_its_words() -> None:
    node = read("[please] (tell|show|give) me (the|a) (time|date|day|week) [in {place}] (now|today|then)")
    few = sample(node, 12)
    assert len(set(few)) == 12 < node.count
    assert {"please", "tell", "show", "give", "the", "a", "time", "date", "day", "week", "{place}", "now"} <= {
        word for reading in few for word in reading.split()
    }


def test_samples_are_the_same_every_time() -> None:
    template = "(a|b|c|d) (e|f|g|h) (i|j|k|l)"
    assert sample(read(template), 5) == sample(read(template), 5)


def test_a_slot_is_filled_as_asked() -> None:
    assert sample(read("go to {place}"), 1, lambda slot: slot.name.upper()) == ["go to PLACE"]


@pytest.mark.parametrize(
    ("template", "reading"),
    [
        ("[please] tell (me|to me) {x}", "tell me {x}"),
        ("(good morning|hello) [you]", "hello"),
        ("joke[s] now", "joke now"),
    ],
)
def test_the_shortest_reading_has_the_fewest_words(template: str, reading: str) -> None:
    assert shortest(read(template)) == reading


def test_the_plainest_reading_leaves_out_what_is_optional_but_articles() -> None:
    assert plainest(read("[please] (tell|show) me [the|a] [local] time [in {place}]")) == "tell me the time"
    assert plainest(read("set [me] [a|an|my] alarm")) == "set an alarm"


def test_the_nearest_reading_uses_the_words_that_are_wanted() -> None:
    wanted = {"show", "me", "the", "disk", "in"}
    node = read("(tell|show|give) me [the|a] (disk|drive) space [in {place}] [on (disk|drive)]")
    assert nearest(node, lambda word: 1.0 if word in wanted else -1.0) == "show me the disk space in {place}"


def test_slots_are_found_wherever_they_are() -> None:
    node = read("(put {a} into|put) {b:c} [with {d}]")
    assert [(slot.name, slot.list_name) for slot in slots(node)] == [("a", "a"), ("c", "b"), ("d", "d")]
    assert certain_slots(node) == {"c"}


@pytest.mark.parametrize("template", ["say <nothing>", "(a;b;c;d;e;f) it"])
def test_an_invalid_template_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match=r"rule <nothing>|too many"):
        read(template)


@pytest.mark.parametrize(
    ("template", "said", "could"),
    [
        ("what time is it [in {place}]", "What time is it?", True),
        ("what time is it [in {place}]", "what time", True),
        ("what time is it [in {place}]", "what time is it in", True),
        ("what time is it [in {place}]", "what time is it in Rome", False),
        ("what time is it [in {place}]", "what time is it now", False),
        # A place that ends like a word of the sentence.
        ("the date in {place} [to (day|morrow)]", "the date in Toronto", False),
        ("tell me (a|one) joke", "tell me a joke", False),
        ("tell me (a|one) joke", "tell me", True),
        ("tell me (a|one) joke", "", False),
        # What a slot has taken could always go on.
        ("{a} plus {b}", "what time is it", False),
        ("{a} plus {b}", "five plus", True),
        ("turn (on|off) the light[s] [in the {room}]", "turn off the lights", True),
    ],
)
def test_a_beginning_can_continue_unless_its_last_word_ends_the_sentence(template: str, said: str, could: bool) -> None:
    assert could_go_on(read(template), bare_words(said)) is could


@pytest.mark.parametrize(
    ("template", "begins"),
    [
        ("tell me a joke", {"tellmeaj"}),
        ("[please] (tell|show) me", {"pleasete", "pleasesh", "tellme", "showme"}),
        ("[{name}] come here", {"", "comehere"}),
        ("add {item} to the list", {"add"}),
        ("(what|which) (day|date) is it", {"whatdayi", "whatdate", "whichday", "whichdat"}),
    ],
)
def test_every_beginning_is_known(template: str, begins: set[str]) -> None:
    assert openers(read(template), 8) == begins
