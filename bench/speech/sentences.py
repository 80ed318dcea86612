"""What people say to an assistant: questions, sums, requests and dates, generated at random from a seed."""

from random import Random
from string import Formatter
from typing import Final

from antiphon.words.speech import spell_number

_PATTERNS: Final = (
    "What time is it in {city}?",
    "What will the weather be like in {city} on {day}?",
    "How many days are there until the {ordinal} of {month}?",
    "What day of the week is {month} the {ordinal}?",
    "Remind me to {chore} on {day} at {hour}.",
    "Please remind me to {chore} in {small} minutes.",
    "Set a timer for {small} minutes.",
    "Wake me up at {hour} tomorrow morning.",
    "What is {large} plus {large}?",
    "What is {large} minus {small}?",
    "How much is {small} times {small}?",
    "How much is {small} percent of {large}?",
    "Can you convert {small} miles to kilometers?",
    "Can you explain how {thing} works?",
    "Tell me something about {topic}.",
    "Tell me a story about {topic}, please.",
    "Turn off the lights in the {room}.",
    "It is too cold in the {room}. Can you turn up the heating?",
    "Add {food} and {food} to my shopping list.",
    "How long do I have to cook {food}?",
    "Do I have any meetings on {day} afternoon?",
    "Move my meeting on {day} to {hour}.",
    "Send a message to {person} and say that I will be {small} minutes late.",
    "When did {person} call me?",
    "I would like to book a table for {few} people at {hour} on {day}.",
    "How do I get from here to the {place}?",
    "Is the {place} open on {day}?",
    "How many people live in {city}?",
    "Play some quiet music in the {room}.",
    "What did I ask you to do on {day}?",
)

_WORDS: Final = {
    "city": ("London", "Paris", "Tokyo", "Berlin", "Chicago", "Sydney", "Madrid", "New York", "Boston", "Rome"),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "month": ("January", "March", "April", "June", "August", "September", "October", "December"),
    "ordinal": ("first", "second", "third", "fifth", "tenth", "twelfth", "sixteenth", "twenty first", "thirtieth"),
    "hour": ("seven o'clock", "half past eight", "quarter past six", "noon", "ten thirty", "five in the afternoon"),
    "chore": (
        *("water the plants", "call my mother", "pay the rent", "take out the trash", "buy a birthday present"),
        *("send the report", "feed the cat", "pick up the children from school"),
    ),
    "thing": ("a bicycle", "the internet", "a solar panel", "a microwave oven", "the stock market", "photosynthesis"),
    "topic": ("black holes", "the Roman Empire", "the history of chess", "elephants", "the moon", "a dragon"),
    "room": ("kitchen", "living room", "bedroom", "bathroom", "hallway", "office", "garage"),
    "food": ("potatoes", "milk", "brown rice", "coffee", "carrots", "chicken soup", "bread", "green beans"),
    "person": ("Michael", "Susan", "Peter", "my sister", "Doctor Miller", "Jennifer", "the plumber", "Robert"),
    "place": ("airport", "train station", "city library", "swimming pool", "art museum", "post office"),
}

_NUMBERS: Final = {"few": range(2, 9), "small": range(3, 60), "large": range(60, 1_000)}


def make_sentences(count: int, seed: int = 0) -> list[str]:
    """Makes different sentences. The same seed gives the same ones, and a larger number begins with the same ones."""
    chance = Random(seed)
    made: dict[str, None] = {}
    patterns: list[str] = []
    while len(made) < count:
        # Every pattern is used once before any is repeated.
        patterns = patterns or chance.sample(_PATTERNS, len(_PATTERNS))
        made[_fill(patterns.pop(), chance)] = None
    return list(made)


def _fill(pattern: str, chance: Random) -> str:
    written = []
    for text, slot, _, _ in Formatter().parse(pattern):
        written += [text, _word(slot, chance) if slot else ""]
    return "".join(written)


def _word(slot: str, chance: Random) -> str:
    if slot in _NUMBERS:
        return spell_number(chance.choice(_NUMBERS[slot])).replace("-", " ")
    return chance.choice(_WORDS[slot])
