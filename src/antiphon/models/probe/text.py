"""Finds out what a text model can do: whether it answers, how fast, whether it calls tools, and what to set."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from antiphon.models.base import ModelError, Prompt, TextModel, warm
from antiphon.models.probe.measuring import Answer, ask
from antiphon.models.probe.questions import (
    ASK_TIME,
    BE_BRIEF,
    CLOCK,
    CLOCK_RESULT,
    HELLO,
    USE_TOOLS,
    is_clock_call,
    tells_result,
)
from antiphon.models.probe.report import Finding, Mark, Report, Tell
from antiphon.models.providers.facts import ServerFacts
from antiphon.tools.spec import Mode
from antiphon.transcript import AssistantMessage, CallMade, Message, ToolMessage, UserMessage

SLOW_FIRST_MS: Final = 3_000
"""A caller who waits longer for the first word wonders whether anyone is there."""
SLOW_COLD_MS: Final = 20_000
FULL: Final = 0.7
"""How much of the context the prompt may take up, so that a conversation fits beside it."""
HIDDEN_TOKENS: Final = 30
"""How many more tokens than it said an answer must have cost to count as reasoned."""
SUGGESTED_TOOLS: Final = 6

CHAT_CLOCK: Final[Mapping[str, Any]] = {"type": "function", "function": CLOCK}


class TextProbe:
    """One test of one model, which must not be wrapped: what it really does is to be found out."""

    def __init__(
        self,
        model: TextModel,
        facts: ServerFacts,
        full_prompt: Callable[[str], Prompt],
        *,
        tell: Tell,
        limit_s: float,
        is_ollama: bool = False,
        nonce: str,
    ) -> None:
        """`full_prompt` makes the prompt of a session in which a request was made, with all tools. `nonce` is a text
        that the server has not read before. `limit_s` is the time for one answer."""
        self._model = model
        self._facts = facts
        self._full_prompt = full_prompt
        self._tell = tell
        self._limit_s = limit_s
        self._is_ollama = is_ollama
        self._nonce = nonce
        self._findings: list[Finding] = []
        self._advice: list[str] = []

    async def run(self) -> Report:
        try:
            await self._say_hello()
        except ModelError as error:
            self._find("answers", Mark.BAD, str(error))
            return self._report(ok=False)
        steps = {
            "tool call": self._call_a_tool,
            "parallel calls": self._call_two_tools,
            "prompt with all tools": self._read_everything,
        }
        for check, step in steps.items():
            try:
                await step()
            except ModelError as error:
                self._find(check, Mark.BAD, str(error))
        return self._report(ok=True)

    async def _say_hello(self) -> None:
        self._tell("Saying hello")
        answer = await self._ask(_prompt(BE_BRIEF, UserMessage(HELLO)))
        self._find("answers", Mark.GOOD, "yes")
        self._describe_server()
        if answer.pieces > 1:
            self._find("streams", Mark.GOOD, f"yes, in {answer.pieces} pieces")
        else:
            self._find("streams", Mark.FAIR, "the whole answer came at once")
        slow = (answer.first_ms or 0) > SLOW_FIRST_MS
        self._find_time("first word", answer.first_ms, Mark.FAIR if slow else Mark.GOOD)
        if (speed := answer.tokens_per_s) is not None:
            self._find("speed", Mark.GOOD, f"{speed:.0f} tokens per second", speed)
        self._find_usage(answer)
        self._find_reasoning(answer)

    def _describe_server(self) -> None:
        facts = self._facts
        if facts.has_model is not None:
            self._find("listed", Mark.GOOD if facts.has_model else Mark.FAIR, "yes" if facts.has_model else "no")
        if facts.context_tokens is None:
            self._find("context", Mark.UNKNOWN, "the server does not tell")
        else:
            self._find("context", Mark.GOOD, f"{facts.context_tokens:,} tokens", facts.context_tokens)

    def _find_usage(self, answer: Answer) -> None:
        if answer.usage is None:
            self._find("usage", Mark.FAIR, "not reported, so tokens are not counted")
        else:
            told = f"{answer.usage.input_tokens} tokens in, {answer.usage.output_tokens} out"
            self._find("usage", Mark.GOOD, told)

    def _find_reasoning(self, answer: Answer) -> None:
        hidden = 0 if answer.usage is None else answer.usage.output_tokens - 2 * answer.said_tokens
        if hidden > HIDDEN_TOKENS:
            self._find("reasoning", Mark.FAIR, f"about {hidden} tokens before the answer, which are not shown", hidden)
            setting = "Set ollama.think to false" if self._is_ollama else "Switch it off in the model's server"
            self._advise(
                f"The model reasons before it answers, which is silence in a call. {setting}, or choose another model."
            )
        elif answer.usage is None:
            self._find("reasoning", Mark.UNKNOWN, "cannot be told without usage")
        else:
            self._find("reasoning", Mark.GOOD, "none")

    async def _call_a_tool(self) -> None:
        self._tell("Asking for a tool call")
        asked = UserMessage(ASK_TIME)
        answer = await self._ask(_prompt(USE_TOOLS, asked, tools=(CHAT_CLOCK,)))
        if not answer.calls and not answer.written_calls:
            self._find("tool call", Mark.BAD, "it made none")
            self._advise("The model does not call tools. Choose one that is trained for it, such as ollama:qwen3.")
            return
        if answer.calls:
            self._find("tool call", Mark.GOOD, "made properly")
        else:
            self._find("tool call", Mark.FAIR, "written as text, which is recognised")
            self._advise(
                "Calls come as text. Switch on the server's own parser if it has one (vLLM: --enable-auto-tool-choice, "
                "llama.cpp: --jinja), or choose a model that is trained for tools."
            )
        call = (answer.calls or answer.written_calls)[0]
        is_right = is_clock_call(call.name, call.args)
        self._find("arguments", Mark.GOOD if is_right else Mark.BAD, "correct" if is_right else "wrong")
        made = CallMade(call.id or "call_1", call.name, call.args)
        result = ToolMessage(made.id, call.name, CLOCK_RESULT)
        told = await self._ask(
            _prompt(USE_TOOLS, asked, AssistantMessage(answer.text, (made,)), result, tools=(CHAT_CLOCK,))
        )
        uses = tells_result(told.text)
        self._find("tool result", Mark.GOOD if uses else Mark.BAD, "used in the answer" if uses else "not used")

    async def _call_two_tools(self) -> None:
        self._tell("Asking for two tool calls at once")
        asked = UserMessage("What time is it in Tokyo, and what time is it in Lima?")
        answer = await self._ask(_prompt(USE_TOOLS, asked, tools=(CHAT_CLOCK,)))
        count = len(answer.calls or answer.written_calls)
        mark, text = (Mark.GOOD, "yes") if count > 1 else (Mark.FAIR, "no, one after the other")
        self._find("parallel calls", mark, text if count else "it made none")

    async def _read_everything(self) -> None:
        """Measures the prompt of a real session, first unknown to the server and then known but for the request."""
        self._tell("Sending the prompt with all tools; the first time may take minutes")
        prompt = self._full_prompt("Hello.")
        unread = replace(prompt, system=f"Session {self._nonce}.\n\n{prompt.system}")
        clock = asyncio.get_running_loop().time
        began_s = clock()
        if await warm(self._model, unread):
            cold_ms: float | None = (clock() - began_s) * 1_000
        else:
            cold_ms = (await self._ask(unread)).first_ms
        again = replace(unread, messages=(UserMessage("What can you do for me? Answer in one short sentence."),))
        answer = await self._ask(again)
        warm_ms = answer.first_ms
        self._find_size(answer, len(prompt.tools))
        slow = (cold_ms or 0) > SLOW_COLD_MS
        self._find_time("all tools, first time", cold_ms, Mark.FAIR if slow else Mark.GOOD)
        is_slow = (warm_ms or 0) > SLOW_FIRST_MS
        self._find_time("all tools, again", warm_ms, Mark.FAIR if is_slow else Mark.GOOD)
        if cold_ms is not None and warm_ms is not None:
            self._judge_times(cold_ms, warm_ms)

    def _find_size(self, answer: Answer, tools: int) -> None:
        used, context = answer.usage.input_tokens if answer.usage is not None else 0, self._facts.context_tokens
        if not used:
            self._find("prompt with all tools", Mark.UNKNOWN, f"{tools} tools; the server does not count tokens")
            return
        full = context is not None and used > FULL * context
        self._find("prompt with all tools", Mark.BAD if full else Mark.GOOD, f"{used:,} tokens for {tools} tools", used)
        if full:
            setting = "Set ollama.num_ctx" if self._is_ollama else "Start its server with a longer context"
            self._advise(
                f"The prompt fills most of the context. {setting} ({4 * used:,} tokens), or set model.tools_per_turn."
            )

    def _judge_times(self, cold_ms: float, warm_ms: float) -> None:
        if cold_ms > SLOW_COLD_MS or warm_ms > SLOW_FIRST_MS:
            self._advise(
                f"Reading all tools takes long. Set model.tools_per_turn to {SUGGESTED_TOOLS}, and leave "
                "model.local_first on."
            )
        if cold_ms > SLOW_FIRST_MS and warm_ms > 0.6 * cold_ms:
            self._advise("The server reads the prompt again for every answer. Switch on its prefix cache.")
        if self._is_ollama and cold_ms > SLOW_FIRST_MS:
            self._advise('Set ollama.keep_alive to "-1m" if the model should stay in memory: loading it takes long.')

    async def _ask(self, prompt: Prompt) -> Answer:
        return await ask(self._model, prompt, self._limit_s)

    def _find(self, check: str, mark: Mark, text: str, value: float | None = None) -> None:
        self._findings.append(Finding(check, mark, text, None if value is None else round(value, 1)))

    def _find_time(self, check: str, ms: float | None, mark: Mark) -> None:
        if ms is None:
            self._find(check, Mark.BAD, "there was no word")
        else:
            self._find(check, mark, f"{ms:,.0f} ms", ms)

    def _advise(self, sentence: str) -> None:
        self._advice.append(sentence)

    def _report(self, *, ok: bool) -> Report:
        return Report(self._model.profile.name, ok, tuple(self._findings), tuple(self._advice))


def _prompt(system: str, *messages: Message, tools: tuple[Mapping[str, Any], ...] = ()) -> Prompt:
    return Prompt(system, messages, tools, Mode.TEXT)
