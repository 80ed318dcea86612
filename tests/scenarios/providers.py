"""The simulated providers of the scenarios, and what each upstream session was given, as the provider saw it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.wire.simulators import RunningSimulator

BEST: Final = "gemini-3.8-live"
STANDARD: Final = "gemini-2.5-flash-native-audio-latest"
FALLBACK: Final = "gpt-realtime-2"
NOTE: Final = "[Note from the app; the user did not say this."
"""How our server tells Gemini the results of tools, which are not turns."""

Said = tuple[str, str]
"""A role and a text."""


@dataclass
class Upstream:
    """One connection to a provider."""

    model: str = ""
    instructions: str = ""
    handle: str | None = None
    """The resumption handle that it was opened with."""
    history: list[Said] = field(default_factory=list)
    """The turns that it was given before anything was asked, without tools."""
    asked: list[str] = field(default_factory=list)
    """The typed messages that it was to answer."""
    heard_audio: bool = False
    order: list[str] = field(default_factory=list)
    """What came, in order: "setup", "history", "asked", "audio"; each once in a row."""

    def note(self, what: str) -> None:
        if self.order[-1:] != [what]:
            self.order.append(what)


@dataclass(frozen=True)
class Providers:
    gemini: RunningSimulator
    openai: RunningSimulator

    @property
    def certificate(self) -> str:
        found = re.search(r"SSL_CERT_FILE=(\S+)", self.gemini.announced)
        assert found is not None
        return found[1]

    def gemini_model(self, name: str = BEST) -> str:
        return f"gemini-live:https://localhost:{self.gemini.port}#{name}"

    @property
    def openai_model(self) -> str:
        return f"openai-realtime:{self.openai.url}/v1#{FALLBACK}"

    @property
    def ladder(self) -> dict[str, str]:
        """Gemini's best model, its standard one, and a model of OpenAI, which cannot be resumed."""
        return {"3": self.gemini_model(), "2": self.gemini_model(STANDARD), "1": self.openai_model}

    def reset(self) -> None:
        for each in (self.gemini, self.openai):
            each.disarm()
            each.clear_log()

    def gemini_sessions(self) -> list[Upstream]:
        """The connections to Gemini since the test began, oldest first, without those that were refused with 429."""
        return [_read_gemini(messages) for messages in _client_messages(self.gemini)]

    def openai_sessions(self) -> list[Upstream]:
        return [_read_openai(messages) for messages in _client_messages(self.openai)]

    def gemini_sent(self, connection: int = -1) -> list[dict[str, Any]]:
        """What Gemini has sent on a connection, the latest one by default."""
        entries = [entry for entry in self.gemini.log() if entry["event"] == "server"]
        numbers = list(dict.fromkeys(entry["connection"] for entry in entries))
        return [entry["message"] for entry in entries if entry["connection"] == numbers[connection]]


def _client_messages(simulator: RunningSimulator) -> list[list[Any]]:
    by_connection: dict[int, list[Any]] = {}
    for entry in simulator.log():
        if entry["event"] == "client":
            by_connection.setdefault(entry["connection"], []).append(entry["message"])
    return list(by_connection.values())


def _read_gemini(messages: Sequence[Any]) -> Upstream:
    upstream = Upstream()
    has_history = False
    for message in messages:
        match message:
            case {"setup": setup}:
                upstream.note("setup")
                upstream.model = setup["model"].removeprefix("models/")
                upstream.instructions = "\n".join(_texts(setup["systemInstruction"]))
                upstream.handle = (setup.get("sessionResumption") or {}).get("handle")
                has_history = "historyConfig" in setup
            case {"client_content": {"turns": turns, "turnComplete": is_complete}}:
                if has_history or not is_complete:
                    has_history = False
                    upstream.note("history")
                    upstream.history += [
                        ("assistant" if turn["role"] == "model" else "user", text)
                        for turn in turns
                        for text in _texts(turn)
                        if not text.startswith(NOTE)
                    ]
                else:
                    upstream.note("asked")
                    upstream.asked += [text for turn in turns for text in _texts(turn)]
            case {"realtime_input": {"text": text}}:
                upstream.note("asked")
                upstream.asked.append(text)
            case {"realtime_input": {"audio": _}}:
                upstream.note("audio")
                upstream.heard_audio = True
    return upstream


def _texts(content: Any) -> Iterator[str]:
    for part in content["parts"]:
        yield part["text"].strip()


def _read_openai(messages: Sequence[Any]) -> Upstream:
    upstream = Upstream()
    items: list[Said] = []
    for message in messages:
        match message:
            case {"type": "session.update", "session": {"instructions": instructions}}:
                upstream.note("setup")
                upstream.instructions = instructions
            case {"type": "conversation.item.create", "item": {"type": "message", "role": role, "content": content}}:
                items += [(role, part["text"].strip()) for part in content]
            case {"type": "response.create"}:
                asked = [text for role, text in items[-1:] if role == "user"]
                _take_history(upstream, items[: len(items) - len(asked)])
                upstream.asked += asked
                upstream.note("asked")
                items = []
            case {"type": "input_audio_buffer.append"}:
                _take_history(upstream, items)
                items = []
                upstream.note("audio")
                upstream.heard_audio = True
    _take_history(upstream, items)
    return upstream


def _take_history(upstream: Upstream, items: Sequence[Said]) -> None:
    if items:
        upstream.note("history")
        upstream.history += items
