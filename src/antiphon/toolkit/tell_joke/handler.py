"""Tells a joke, about the topic if there is one."""

import re

from antiphon.tools.context import Args, Context
from antiphon.tools.result import ToolResult, ok

from .jokes import JOKES


async def execute(args: Args, context: Context) -> ToolResult:
    topic = args.get("topic")
    fitting = JOKES if topic is None else [joke for joke in JOKES if _is_about(joke, topic)]
    joke = context.rng.choice(fitting or JOKES)
    spoken = joke if fitting else f"I don't know any jokes about {topic}, but here's another one. {joke}"
    return ok({"joke": joke, "is_about_topic": bool(fitting)}, spoken=spoken)


def _is_about(joke: str, topic: str) -> bool:
    """Whether the joke contains the topic's last word, in singular or plural: "an old cow" matches cows."""
    words = re.findall(r"[a-z']+", topic.lower())
    return bool(words) and _singular(words[-1]) in map(_singular, re.findall(r"[a-z']+", joke.lower()))


def _singular(word: str) -> str:
    return word.removesuffix("s")
