"""The faults of the text model of a chaos run: it refuses, or its stream breaks off."""

from collections import Counter, deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum

from antiphon.models.base import Event, ModelError, Prompt, TextModel
from antiphon.models.providers.failures import Refusal, cut_off, explain
from antiphon.models.providers.references import Endpoint


class TextFaultKind(StrEnum):
    RATE_LIMIT = "text 429"
    SERVER_ERROR = "text 503"
    CUT = "text cut"


@dataclass(frozen=True, slots=True)
class TextFault:
    kind: TextFaultKind
    after_events: int
    """How much of a message comes before its stream is cut."""
    retry_after_s: int | None


class TextFaults:
    """The faults that wait for the next messages of the text model, and those that have happened."""

    def __init__(self) -> None:
        self.armed: deque[TextFault] = deque()
        self.happened: Counter[str] = Counter()


class FaultyText:
    """A text model that fails as a provider's does."""

    def __init__(self, model: TextModel, faults: TextFaults) -> None:
        self.profile = model.profile
        self._model = model
        self._faults = faults

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        fault = self._faults.armed.popleft() if self._faults.armed else None
        if fault is not None and fault.kind is not TextFaultKind.CUT:
            raise self._refuse(fault)
        left = None if fault is None else fault.after_events
        async for event in self._model.reply(prompt):
            if left == 0:
                self._faults.happened[TextFaultKind.CUT] += 1
                raise cut_off(self.profile.name)
            left = None if left is None else left - 1
            yield event

    def _refuse(self, fault: TextFault) -> ModelError:
        self._faults.happened[fault.kind] += 1
        headers = {} if fault.retry_after_s is None else {"retry-after": str(fault.retry_after_s)}
        status = 429 if fault.kind is TextFaultKind.RATE_LIMIT else 503
        refusal = Refusal(status, "Try again later.", headers)
        return explain(refusal, self.profile.name, Endpoint("http://127.0.0.1:9003/v1", "", "any-key"))
