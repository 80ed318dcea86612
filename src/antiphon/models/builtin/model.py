"""The offline assistant as a `TextModel`: it matches requests by a grammar, calls tools and phrases their results."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from antiphon.models.base import (
    CallRequested,
    Completion,
    Event,
    MessageComplete,
    Prompt,
    StopReason,
    TextDelta,
    TextProfile,
)
from antiphon.models.builtin import late_pieces, lookup, references, replies, small_talk, stories, wording
from antiphon.models.builtin.collecting import (
    EXACT,
    GIVEN_UP,
    SAY_AGAIN,
    ReadBack,
    Settled,
    Wanted,
    ask_again,
    is_read_back,
    resolve,
)
from antiphon.models.builtin.context import Context, DoneCall, Exchange, read_batches, read_exchanges
from antiphon.models.builtin.follow_ups import FollowUps
from antiphon.models.builtin.fragments import is_place
from antiphon.models.builtin.learning import Learner
from antiphon.models.builtin.recall import Memory, Recall, find_recall
from antiphon.models.builtin.understanding import Understanding, words_of
from antiphon.models.builtin.understood import Ask, Need, PlannedCall, Remember, Run, Say, Tier, Understood, Unknown
from antiphon.models.completeness import Completeness
from antiphon.models.expectation import Expectation
from antiphon.telemetry.metrics import UnderstandingStats
from antiphon.tools.affirmation import verdict
from antiphon.tools.call import ToolCall
from antiphon.tools.confirm import preview_of
from antiphon.tools.errors import ErrorType
from antiphon.tools.policy import must_confirm
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool
from antiphon.transcript import AssistantMessage, Message, ToolMessage, UserMessage

FAVOURITES: Final = (
    *(
        "set_timer",
        "get_current_time",
        "get_weather",
        "set_reminder",
        "list_add",
        "calculate",
        "ha_control",
        "tell_joke",
    ),
    *("calendar_list_events", "convert_units", "time_until", "kb_search"),
)
"""The tools whose examples are shown to somebody who asks what they can say."""
GOODBYE: Final = "end_voice_session"

_NO: Final = re.compile(
    r"\W*(?:(?:oh|well|um+|uh+)\W+)*(?:no|nope|nah|wrong|incorrect|that(?:['’]s| is) (?:wrong|not right|"
    r"incorrect))\b[^\w]*",
    re.I,
)
_SHARED: Final = re.compile(r"\s*,?\s+and\s+(?:also\s+)?(?:what about\s+|how about\s+)?|\s*,\s+", re.IGNORECASE)

_CONSENT: Final = re.compile(
    r"\b(?:yes|y|go|do|proceed|confirm\w*|approved?|please|agreed?|absolutely|definitely)\b", re.I
)
_DOUBTFUL: Final = re.compile(
    r"\A(?:it|them|that|this|these|those|one|something|anything|stuff)\Z|"
    r"\b(?:can|could|would) you (?:please )?(?:put|add|stick|take|remove|write)\b|"
    r"\b(?:put|stick|add|throw|write|cross|tick) (?:it|that|them|those) (?:on|to|off)\Z|"
    r"[,.;]\s*(?:and )?(?:also|then)\s+(?:put|add|set|remind|turn|start|take|delete|remove|cancel)\b",
    re.IGNORECASE,
)
MAX_SHARING: Final = 3
"""How many requests may share the words of the first."""
MAX_ANSWERS: Final = 12
"""How many answers to its questions, one after the other, the assistant follows."""

PROFILE: Final = TextProfile(name="builtin", needs_network=False, context_tokens=10_000_000)
"""It reads any number of messages."""


class Toolbox(Protocol):
    """The part of a registry snapshot that is used here."""

    @property
    def tools(self) -> Mapping[str, Tool]: ...


class BuiltinModel:
    """Stateless: it reads the past from the messages. Keep one per snapshot, since compiling takes time."""

    profile = PROFILE

    def __init__(
        self,
        toolbox: Toolbox,
        has_knowledge: Callable[[], Awaitable[bool]] | None = None,
        *,
        name: str = "Antiphon",
        learner: Learner | None = None,
    ) -> None:
        """`has_knowledge` tells whether there is a knowledge base to look into for what no tool is for. `name` is what
        the assistant says it is called. Without a `learner` nothing is understood by its meaning."""
        self.stats = UnderstandingStats()
        self._learner = learner
        self._toolbox = toolbox
        self._has_knowledge = has_knowledge
        self._name = name
        self._compiled: tuple[Mapping[str, Tool], Understanding, FollowUps] | None = None

    @property
    def _understanding(self) -> Understanding:
        return self._compile()[1]

    @property
    def _follow_ups(self) -> FollowUps:
        return self._compile()[2]

    def _compile(self) -> tuple[Mapping[str, Tool], Understanding, FollowUps]:
        """Compiles the sentences. That is done again when the toolbox has other tools, as after a reload."""
        tools = self._toolbox.tools
        if self._compiled is None or self._compiled[0] is not tools:
            understanding = Understanding(tools)
            self._compiled = tools, understanding, FollowUps(tools, understanding.arguments)
        return self._compiled

    def compile(self) -> None:
        """Compiles the grammar now, in this thread, instead of at the first prompt."""
        self._compile()

    async def learn(self) -> bool:
        """Learns what requests mean, if there is an embedding model. Until then they are only matched by the grammar.

        It takes seconds the first time, and has to be done again when the tools have changed.
        """
        return self._learner is not None and await self._learner.learn(self._understanding)

    async def prepare(self, prompt: Prompt) -> None:
        """Embeds what the user said last, so that nothing else has to run the model on the event loop."""
        if self._learner is not None:
            # What was said before is understood again if it led to a question.
            said = [message.text for message in prompt.messages if isinstance(message, UserMessage)]
            for text in (self._clean(text) for text in said[-2:]):
                for part in (text, *stories.rests(text)):
                    await self._learner.prepare(self._understanding, part, prompt.mode)

    def completeness(self, text: str, mode: Mode) -> Completeness:
        """Judges how complete a request the text is."""
        judged = self._understanding.completeness(text, mode)
        is_whole = judged in (Completeness.UNKNOWN, Completeness.BRIEF) and self._follow_ups.is_whole(text)
        return Completeness.EXTENDABLE if is_whole else judged

    def describe_tools(self) -> Mapping[str, Sequence[str]]:
        """Returns what describes each tool: its summary, and sentences that ask for it."""
        asked = self._understanding.sentences
        return {id: (tool.summary, *asked.get(id, ())) for id, tool in self._toolbox.tools.items()}

    def find_request(self, text: str, mode: Mode) -> Run | None:
        """Returns the calls that the text asks for, if the whole text is a request in the sentences of the tools, or if
        it certainly means one that reads."""
        clean = self._clean(text)
        return self._find(clean, mode) or self._understanding.find_certain(clean, mode)

    def find_follow_up(self, messages: Sequence[Message], mode: Mode) -> tuple[Run, Sequence[DoneCall]] | None:
        """Returns the calls that the user's last message asks for by what was said before, and the calls that it refers
        to; None if it does not refer to anything."""
        match messages[-1:]:
            case [UserMessage(text=said)]:
                text, context = self._clean(said), self._context(messages[:-1])
                found = self._refer(text, context, mode, self._find(text, mode))
                if isinstance(found, Run) and context.request is not None:
                    return found, context.request.calls
        return None

    def find_answer(self, messages: Sequence[Message], mode: Mode) -> Run | Need | None:
        """Returns what the user's last message makes of a value that the assistant has asked for; None if it is not an
        answer to that."""
        match messages[-1:], self._asked_before(messages, mode):
            case [UserMessage(text=said)], Need() as need:
                text = wording.clean(said)
                if not self._is_other(need, text, self._find(text, mode), mode):
                    return self._collect(need, said, mode)
        return None

    async def reply(self, prompt: Prompt) -> AsyncIterator[Event]:
        said = max((n for n, m in enumerate(prompt.messages) if isinstance(m, UserMessage)), default=0)
        clock = asyncio.get_running_loop().time
        began_s = clock()
        await self.prepare(prompt)
        understood = self._understand_whole(prompt, said)
        took_ms = (clock() - began_s) * 1_000
        results = _last_results(prompt.messages)
        told = list[str]()
        if prompt.completion is not None and isinstance(understood, Run):
            plan, is_carried_out = self._plan(prompt.completion, prompt.messages, said, understood)
            told = self._tell_done(plan, is_answered=prompt.completion.is_answered)
            understood = replace(understood, calls=plan.calls) if plan.calls else Say(" ".join(told))
            results = results if is_carried_out else []
        query = understood.query if isinstance(understood, Run | Unknown) else None
        if query is not None and not results and await self._can_look_up(prompt.mode):
            yield CallRequested(lookup.call(query))
            yield MessageComplete(StopReason.CALLS)
            return
        if query is not None and isinstance(understood, Run) and lookup.is_in_vain(results):
            results = []
        if not results:
            self.stats.count(_tier(understood), took_ms)
        elif query is not None and results[0].name == lookup.TOOL:
            self.stats.count(Tier.UNKNOWN if lookup.is_in_vain(results) else Tier.KNOWLEDGE, took_ms)
        if isinstance(understood, Run) and not results:
            for call in understood.calls:
                yield CallRequested(ToolCall(None, call.tool_id, dict(call.args)))
            yield MessageComplete(StopReason.CALLS)
            return
        # Results that arrived after the last turn was interrupted come first, except questions already answered, and
        # what was looked up for a request that was then said in full.
        answered = {message.name for message in results}
        late = _last_results(prompt.messages[:said])
        sentences = [
            self._say(each, None)
            for each in late
            if not (each.name in answered and (replies.is_question(each) or not self._writes(each.name)))
        ]
        if results:
            sentences += [*told, *self._put_into_words(results, understood)]
        elif isinstance(understood, Ask | Need):
            sentences.append(understood.question)
        elif isinstance(understood, Say):
            sentences.append(understood.text)
        elif isinstance(understood, Remember):
            memory = Memory(prompt.messages[:said], prompt.summary, prompt.mode, words_of=words_of)
            sentences.append(memory.answer(understood.recall))
        yield TextDelta(" ".join(sentences))
        expects = self._understanding.expects(understood) if isinstance(understood, Need) else Expectation.NOTHING
        yield MessageComplete(StopReason.DONE, expects=expects)

    def _understand_whole(self, prompt: Prompt, said: int) -> Understood:
        """Returns what the user's last message asks for. If the assistant acted on its first words, and the whole is
        not a request of its own, the rest may refer to that: "add milk to my list … and eggs"."""
        messages, completion = prompt.messages, prompt.completion
        understood = self._understand(messages[: said + 1], prompt.mode)
        if completion is None or completion.is_answered or isinstance(understood, Run):
            return understood
        text, first = str(getattr(messages[said], "text", "")), completion.first_words.rstrip(" .,!?")
        batches = read_batches(messages[said + 1 :])
        if not batches or not text.startswith(first):
            return understood
        done = Exchange(first, tuple(batches[0]), "")
        context = Context([*read_exchanges(messages[:said]), done], self._follow_ups.kind_of)
        rest = wording.clean(text[len(first) :].strip(" .,"))
        found = self._refer(rest, context, prompt.mode, self._find(rest, prompt.mode))
        return replace(found, calls=(*_again(done.calls), *found.calls)) if isinstance(found, Run) else understood

    def _plan(
        self, completion: Completion, messages: Sequence[Message], said: int, run: Run
    ) -> tuple[late_pieces.Plan, bool]:
        """Returns what is left to do for a request that was completed late, and whether that has just been done."""
        exchanges, before = read_exchanges(messages[:said]), list[DoneCall]()
        if completion.is_answered:
            answered = [each for each in exchanges if each.text == completion.first_words]
            before = list(answered[-1].calls) if answered else []
        earlier = [call for each in exchanges for call in each.calls if call not in before]
        return late_pieces.resume(run.calls, before, read_batches(messages[said + 1 :]), self._writes, earlier)

    def _tell_done(self, plan: late_pieces.Plan, *, is_answered: bool) -> list[str]:
        """Tells what was done for the first words and stays. What is wanted anyway was told if they were answered."""
        kept, repeated = (
            [self._say(call.result, None) for call in calls if call.result is not None]
            for calls in (plan.kept, plan.repeated)
        )
        if kept:
            kept = [replies.TOO_QUICK, *kept, *([replies.CANNOT_CHANGE] if plan.is_blocked else [])]
        return kept if is_answered and (plan.calls or kept) else [*kept, *repeated]

    def _writes(self, name: str) -> bool:
        tool = self._toolbox.tools.get(name)
        return tool is None or tool.spec.writes

    async def _can_look_up(self, mode: Mode) -> bool:
        tool = self._toolbox.tools.get(lookup.TOOL)
        if self._has_knowledge is None or tool is None or mode not in tool.spec.allowed_modes:
            return False
        return await self._has_knowledge()

    def _understand(self, messages: Sequence[Message], mode: Mode) -> Understood:
        """Returns what the last message, the user's, asks for."""
        said = messages[-1].text if messages and isinstance(messages[-1], UserMessage) else ""
        text = self._clean(said)
        answer = verdict(text)
        asked = self._asked_before(messages, mode)
        if isinstance(asked, Ask) and answer is not None:
            return Run((asked.call,)) if answer else Say(replies.LEFT_ALONE)
        context = self._context(messages[:-1])
        plain = self._find(text, mode)
        if isinstance(asked, Need) and (completed := self._complete(asked, said, plain, mode)) is not None:
            return completed
        # "cancel that" can be a tool's sentence too.
        found = (
            None if _asked_for_approval(messages) and answer is not None else self._refer(text, context, mode, plain)
        )
        if found is not None:
            return found
        if plain is not None:
            return self._understanding.ask_first(plain, text) or plain
        if answer is not None:
            return Say(_acknowledge(text, answer, messages, context))
        return self._chat(text, mode) or self._guess(text, context, mode)

    def _clean(self, said: str) -> str:
        """Returns the words without hesitations and without spelling mistakes."""
        return self._understanding.put_right(wording.clean(said))

    def _guess(self, text: str, context: Context, mode: Mode) -> Understood:
        """Guesses what is meant by a text that is no sentence of a tool, with what it refers to, or on its own."""
        for tools, candidate in references.candidates(text, context):
            understood = self._understanding.understand(candidate, mode)
            if isinstance(understood, Run) and all(call.tool_id.startswith(tools) for call in understood.calls):
                return understood
        understood = self._understanding.understand(text, mode)
        if isinstance(understood, Unknown):
            rests = (self._understanding.understand(rest, mode) for rest in stories.rests(text))
            understood = next((each for each in rests if isinstance(each, Run)), understood)
        is_doubtful = isinstance(understood, Run) and any(map(self._is_doubtful, understood.calls))
        return Say(replies.UNSURE) if is_doubtful else understood

    def _find(self, text: str, mode: Mode) -> Run | None:
        """Returns the calls of the first form of the text that is a request."""
        for form in wording.forms(text):
            found = self._share(form, mode, self._understanding.find_request(form, mode))
            if found is not None and not any(map(self._is_doubtful, found.calls)):
                return self._leave_out_reason(form, mode, replace(found, calls=_last_words(found.calls)))
        return None

    def _is_doubtful(self, call: PlannedCall) -> bool:
        """Whether a call would write down "them", or what was another request."""
        texts = (value for value in call.args.values() if isinstance(value, str))
        return self._toolbox.tools[call.tool_id].spec.writes and any(map(_DOUBTFUL.search, texts))

    def _refer(self, text: str, context: Context, mode: Mode, plain: Run | None) -> Understood | None:
        return self._follow_ups.find(text, context, mode, lambda each: self._find(each, mode), plain)

    def _context(self, messages: Sequence[Message]) -> Context:
        return Context(read_exchanges(messages), self._follow_ups.kind_of)

    def _share(self, text: str, mode: Mode, whole: Run | None) -> Run | None:
        """Returns both requests of "what time is it in Tokyo and in London", of which the second lacks words of the
        first, or refers to it."""
        if whole is not None and (len(whole.calls) != 1 or not _takes_a_joint(whole.calls[0])):
            return whole
        for joint in _SHARED.finditer(text):
            first = self._understanding.find_request(text[: joint.start()], mode)
            if first is None or len(first.calls) != 1:
                continue
            calls = [first.calls[0]]
            for rest in _SHARED.split(text[joint.end() :])[:MAX_SHARING]:
                before = [Exchange("", (DoneCall(calls[-1].tool_id, calls[-1].args, None),), "")]
                context = Context(before, self._follow_ups.kind_of)
                more = self._follow_ups.find_more(calls[-1], rest, context, lambda each: self._look_up(each, mode))
                if more is None:
                    break
                calls.append(more)
            else:
                return Run(tuple(calls))
        return whole

    def _look_up(self, text: str, mode: Mode) -> Run | None:
        return self._understanding.find_request(text, mode)

    def _leave_out_reason(self, text: str, mode: Mode, whole: Run) -> Run:
        """Returns the request without "because I'm baking bread", unless that may belong to a message."""
        shorter = stories.without_reason(text)
        if shorter is None or not any(call.args for call in whole.calls):
            return whole
        found = self._understanding.find_request(shorter, mode)
        is_free = any(self._follow_ups.takes_text(call) for call in whole.calls)
        return whole if found is None or is_free else found

    def _chat(self, text: str, mode: Mode) -> Understood | None:
        """Returns what to say to a greeting, thanks or a question about the assistant."""
        talk = small_talk.find(words_of(text))
        if talk is None or (talk.kind is small_talk.Remark.OTHER and find_recall(words_of(text)) is not None):
            return None
        if talk.kind is small_talk.Remark.HELP:
            return Say(replies.offers(text, self._understanding.favourites(FAVOURITES, mode)))
        answer = talk.answer(text, self._name)
        ending = self._toolbox.tools.get(GOODBYE)
        if talk.kind is small_talk.Remark.GOODBYE and ending is not None and mode in ending.spec.allowed_modes:
            return Run((PlannedCall(GOODBYE, {"reason": "user_request", "final_message": answer}, None),))
        return Say(answer)

    def _put_into_words(self, results: Sequence[ToolMessage], understood: Understood) -> list[str]:
        calls: list[PlannedCall] = list(understood.calls) if isinstance(understood, Run) else []
        sentences = []
        for message in results:
            if isinstance(understood, Unknown) and lookup.is_in_vain([message]):
                sentences.append(understood.text)
                continue
            call = next((call for call in calls if call.tool_id == message.name), None)
            if call is not None:
                calls.remove(call)
            sentences.append(self._say(message, None if call is None else call.say))
        return sentences

    def _say(self, message: ToolMessage, say: str | None) -> str:
        tool = self._toolbox.tools.get(message.name)
        return replies.result(message, say, is_write=tool is not None and tool.spec.writes)

    def _complete(self, need: Need, said: str, plain: Run | None, mode: Mode) -> Understood | None:
        """Returns what the answer to a question makes of the call that lacks an argument; None if it is no answer."""
        text = wording.clean(said)
        # Digits are read as they were said: cleaning would take "to to" for a stutter.
        collected = self._collect(need, said, mode)
        if collected is not None and not self._is_other(need, text, plain, mode):
            return collected
        if verdict(text) is False:
            return Say(replies.LEFT_ALONE)
        if plain is not None:
            return None
        if need.asked is None:
            answers = (self._understanding.complete(need, each) for each in wording.mended(text))
            return next((each for each in answers if each is not None), None)
        if find_recall(words_of(text)) in (Recall.REPETITION, Recall.LAST_ANSWER):
            return need
        other = self._chat(text, mode) or self._understanding.find_certain(text, mode)
        if other is not None:
            return other
        again = ask_again(need.asked, said)
        return Say(GIVEN_UP[need.asked.kind]) if again is None else replace(need, question=again.question, asked=again)

    def _collect(self, need: Need, said: str, mode: Mode) -> Run | Need | None:
        """Returns the call with the value that was asked for, or the question that reads it back; None if the answer is
        no such value, or none that the tool takes."""
        if need.asked is None:
            return None
        step = resolve(need.asked, said, is_spoken=mode is Mode.VOICE)
        match step:
            case Settled(value=value):
                return self._understanding.settle(need, value)
            case ReadBack(value=value):
                settled = self._understanding.settle(need, value)
                if settled is None or (isinstance(settled, Run) and self._is_confirmed(settled.calls[0], step)):
                    return settled
        return None if step is None else replace(need, question=step.question, asked=step)

    def _is_other(self, need: Need, text: str, plain: Run | None, mode: Mode) -> bool:
        """Whether the text is something else than the value, although it could be read as one: any words are a name."""
        if need.asked is None or need.asked.kind in EXACT:
            return False
        return plain is not None or (isinstance(need.asked, Wanted) and self._chat(text, mode) is not None)

    def _is_confirmed(self, call: PlannedCall, value: ReadBack) -> bool:
        """Whether the tool asks for approval and says the value then, so that reading it back would ask twice."""
        tool = self._toolbox.tools[call.tool_id]
        args, _ = tool.arguments.complete(dict(call.args))
        return must_confirm(tool, args, untrusted=False) and value.is_in(preview_of(tool, args))

    def _asked_before(self, messages: Sequence[Message], mode: Mode) -> Ask | Need | None:
        """Repeats the question that the assistant, or a tool, has just asked, from the words that led to it.

        The question's text is only compared: another model may have written it. It may have been interrupted.
        """
        match messages[-2:-1]:
            case [AssistantMessage(text=text, calls=())] if self._may_ask(text):
                said = [n for n, message in enumerate(messages[:-2]) if isinstance(message, UserMessage)]
                if not said:
                    return None
                # What is read back was spoken, whatever the mode is now.
                asked_in = Mode.VOICE if is_read_back(text) else mode
                match self._understand(messages[said[-MAX_ANSWERS:][0] : said[-1] + 1], asked_in):
                    case Ask() | Need() as asked if text.endswith(asked.question) or asked.question.startswith(text):
                        return asked
                    case Run(calls=(call,)) if any(map(_was_refused, messages[said[-1] + 1 : -2])):
                        return self._understanding.find_missing(call)
        return None

    def _may_ask(self, text: str) -> bool:
        """Whether the assistant's text may be a question, as far as it was heard."""
        asks = (each.ask for of_tool in self._understanding.arguments.values() for each in of_tool.values() if each.ask)
        return bool(text) and (
            text.endswith("?")
            or is_read_back(text)
            or any(question.startswith(text) or text.endswith(question) for question in (*SAY_AGAIN.values(), *asks))
        )


def _last_words(calls: Sequence[PlannedCall]) -> tuple[PlannedCall, ...]:
    """Leaves out a call that the next one says more exactly: "make it warmer, set the heating to 23"."""
    kept = [
        call
        for call, after in zip(calls, [*calls[1:], None], strict=True)
        if after is None
        or call.tool_id != after.tool_id
        or "entity" not in call.args
        or (call.args["entity"], call.args.get("area")) != (after.args.get("entity"), after.args.get("area"))
    ]
    return tuple(kept)


def _again(calls: Sequence[DoneCall]) -> Iterator[PlannedCall]:
    return (PlannedCall(call.tool_id, call.args, None) for call in calls)


def _acknowledge(text: str, answer: bool, messages: Sequence[Message], context: Context) -> str:
    """Answers a yes or a no to nothing that was asked."""
    if _asked_for_approval(messages):
        # A yes in time would have been carried out before the assistant was asked.
        return replies.LEFT_ALONE if not answer else replies.NO_LONGER_OPEN
    if answer:
        # After "Okay." somebody who said "go ahead" would believe that something is done.
        return replies.NOTHING_ASKED if _CONSENT.search(text) else replies.OKAY
    was_request = context.last is not None and bool(context.last.calls)
    return replies.WHAT_INSTEAD if was_request and _NO.fullmatch(text) else replies.OKAY


def _takes_a_joint(call: PlannedCall) -> bool:
    """Whether an argument may be two: "Tokyo and in London", but not "Trinidad and Tobago"."""
    named = [value for value in call.args.values() if isinstance(value, str)]
    return any(map(_SHARED.search, named)) and not any(map(is_place, named))


def _was_refused(message: Message) -> bool:
    """Whether a call was refused for its arguments, which a tool does with a question for what is missing."""
    match message:
        case ToolMessage(ok=False, content={"error": {"type": ErrorType.VALIDATION}}):
            return True
    return False


def _tier(understood: Understood) -> Tier:
    match understood:
        case Run(tier=tier):
            return tier
        case Ask() | Need():
            return Tier.MEANING
        case Unknown():
            return Tier.UNKNOWN
    return Tier.CONVERSATION


def _last_results(messages: Sequence[Message]) -> list[ToolMessage]:
    results: list[ToolMessage] = []
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            break
        results.insert(0, message)
    return results


def _asked_for_approval(messages: Sequence[Message]) -> bool:
    """Whether the message before the user's last one asked for the approval of a call."""
    match messages[-3:-1]:
        case [ToolMessage() as asked, AssistantMessage(calls=())]:
            return replies.is_question(asked)
    return False
