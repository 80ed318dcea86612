"""What a text means that says only what differs from the last request: "and in London?", "no, ten minutes", "again"."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from antiphon.models.builtin import references, replies, small_talk, sums
from antiphon.models.builtin.context import TIMES, Context, DoneCall
from antiphon.models.builtin.fragments import Fragment, change_device, find_step, is_place, kind_of, read
from antiphon.models.builtin.understanding import words_of
from antiphon.models.builtin.understood import Ask, PlannedCall, Run, Say, Understood
from antiphon.models.builtin.undoing import UNDO, undo
from antiphon.sentences.templates import Argument
from antiphon.tools.spec import Mode
from antiphon.tools.tool import Tool
from antiphon.words.numbers import write_digits
from antiphon.words.readers import Reader

MAX_CHARS: Final = 120
"""A longer text is not elliptic."""

MAX_FRAGMENT_WORDS: Final = {False: 4, True: 9}
"""How long it may be without words that introduce it, and with them."""
MAX_SPLIT_WORDS: Final = 7
"""The longest that may say two things. Trying every way to split it takes a millisecond a word."""

FindRequest = Callable[[str], Run | None]

_END: Final = r"[\s,.!?]*\Z"
_GAP: Final = r"(?:[\s,.!;:…—–-]+|\Z)"

_CORRECTS: Final = (
    r"no|nope|nah|wait|sorry|oops|whoops|actually|i mean|i meant|i said|i wanted|rather|correction|wrong|not that|"
    r"scratch that|my mistake|my bad|i misspoke|on second thoughts?|come to think of it|(?:i|i['’]ve) changed my mind|"
    r"that(?:['’]s| is) (?:wrong|not right|not it|not what i (?:meant|said|"
    r"asked for))|"
    r"(?:please )?make (?:it|that)|(?:please )?change (?:it|that|the \w+) to|(?:please )?(?:set|move|"
    r"switch) (?:it|that) (?:to|for)|"
    r"(?:it|that) should (?:be|have been)|let['’]s (?:make|say)(?: (?:it|that))?|i ment"
)
_SOFT: Final = (
    r"oh|ah|um+|uh+|erm?|hm+|well|hey|please|but|hang on|hold on|excuse me|just|it['’]s|it is|can you|could you|"
    r"would you|"
    r"let['’]s|let us|instead|ok|okay|so|i|meant|mean|to say"
)
_CORRECTION: Final = re.compile(rf"(?:(?P<strong>{_CORRECTS})|{_SOFT}){_GAP}", re.IGNORECASE)
_CORRECTION_END: Final = re.compile(
    rf"[\s,]+(?:instead|please|i mean|i meant|i ment|i said|rather|thanks|thank you|sorry|that is|i should say){_END}",
    re.IGNORECASE,
)
_NOT_THIS: Final = re.compile(r"not\s+(?P<old>.+?)(?:\s*,\s*|\s+)(?:but\s+|i said\s+|i meant\s+)?(?P<new>\S+.*)", re.I)
_THIS_NOT: Final = re.compile(r"(?P<new>.+?)\s*,?\s+(?:and\s+)?not\s+(?P<old>.+)", re.IGNORECASE)

_LEAD: Final = re.compile(
    rf"(?:(?P<strong>and(?: also)?|also|plus|(?:and )?what about|(?:and )?how about|what if (?:it['’]s|it is|i say)|"
    r"(?:do )?the same(?: thing)?|same(?: thing| question)?|(?:and )?(?:what|how)(?:['’]s| is| was| will|"
    r" would) it(?: be)?(?: like)?|or)|"
    rf"ok|okay|so|well|oh|ooh|ah|yes|yeah|yep|wait|hang on|actually|now|then|hm+|um+|uh+|great|thanks|thank you|"
    rf"cool|nice|right|please|do){_GAP}",
    re.IGNORECASE,
)
_WEAK_LEAD: Final = re.compile(r"\A(?:(?:ok|okay|so|well|oh|now|then)[\s,]+)+(?=\w)", re.IGNORECASE)
_MISHEARD_LEAD: Final = re.compile(r"\A(?:end(?:on|in|ing)?|anden|hand|add)\b(?:\s+(?:in|on))?\s+(?=\S)", re.IGNORECASE)
"""What recognisers write for "and in": "Endon London"."""
_LEAD_END: Final = re.compile(rf"[\s,]+(?:then|please|too|as well|instead|also|now|though|again){_END}", re.IGNORECASE)
_INSTEAD: Final = re.compile(r"\b(?:on second thoughts?|changed my mind|instead|rather)\b", re.IGNORECASE)
_TOO: Final = re.compile(r"\b(?:also|too|as well)\b", re.IGNORECASE)
_ANOTHER: Final = re.compile(
    r"(?:(?:another|a second|one more|a third)(?: one| timer| alarm| reminder)?|one)\s+(?=(?:for|at|in|on|about)\b)",
    re.I,
)

_AGAIN: Final = re.compile(
    rf"(?:(?:ok|okay|and|please|now|so|haha|ha|lol|good|great|nice)[\s,.!]+)*(?:(?:do|try|roll|throw|flip|toss|"
    rf"check|ask|run|play|pick|choose|decide|draw|spin|shuffle|go|have (?:a|another)|give it|tell me|give me|"
    rf"let['’]s (?:go|hear|do|have))\s+)?"
    r"(?:(?:it|that|them|the (?:dice|coin|die)|a coin|a die|one|the same(?: thing)?|same)\s+)?"
    rf"(?:again|once more|once again|one more time|another(?: one| time| go| try| roll| flip| toss| joke)?|"
    rf"one more(?: please| go| try| roll| flip| joke)?|a (?:new|different|second) one|go|"
    rf"(?:the )?same again|more)"
    rf"(?:\s+(?:please|for me|then))*{_END}",
    re.IGNORECASE,
)
_CHANGE_ORDER: Final = (
    *(Reader.EXPRESSION, Reader.DURATION, Reader.QUANTITY, Reader.UNIT, Reader.NUMBER, Reader.LEVEL, Reader.DICE),
    *(Reader.WHEN, Reader.TIME, Reader.DATE, Reader.PERIOD, Reader.LIST, Reader.PLACE, Reader.ITEMS, Reader.TEXT),
)
"""The most special kinds come first: any words can be a text."""
_TOLD_BY_THEMSELVES: Final = (Reader.PLACE, Reader.PERIOD, Reader.WHEN, Reader.DURATION, Reader.NUMBER, Reader.LIST)
"""Kinds whose words show that they are complete."""
_WEEK: Final = re.compile(
    r"(?:for |over )?(?:this|next|the|the coming|the next|the rest of the) week|the next few days", re.I
)
_SIBLINGS: Final = {"get_weather": "get_forecast", "get_forecast": "get_weather"}
_SUBJECTS: Final = ("what is {}", "what is on {}", "show me {}")


@dataclass(frozen=True, slots=True)
class FollowUps:
    """Reads elliptic texts by the parameters of the tools."""

    tools: Mapping[str, Tool]
    arguments: Mapping[str, Mapping[str, Argument]]
    """How tools say that their arguments are found, by tool and parameter."""

    def kind_of(self, tool_id: str, parameter: str) -> Reader | None:
        declared = self.arguments.get(tool_id, {}).get(parameter)
        return kind_of(parameter) if declared is None else declared.reader

    def find(
        self, text: str, context: Context, mode: Mode, find_request: FindRequest, plain: Run | None
    ) -> Understood | None:
        """Returns what the text means after what was said before; None if it does not refer to that.

        `plain` are the calls that the text asks for on its own.
        """
        text = text.strip()
        if not context.exchanges or len(text) > MAX_CHARS:
            return None
        if (resolved := references.resolve(text, context, find_request, plain)) is not None:
            return self._allowed(self._instead(text, resolved, context), mode)
        found = self._undo(text, context, plain) or self._correct(text, context, find_request, plain)
        found = found or self._continue_sum(text, context)
        if found is None and plain is None:
            found = self._again(text, context) or self._follow(text, context, find_request)
        return None if found is None else self._allowed(found, mode)

    def find_more(
        self, first: PlannedCall, rest: str, context: Context, find_request: FindRequest
    ) -> PlannedCall | None:
        """Returns the second request of a sentence such as "what time is it in Tokyo and in London": the first one with
        another place; or one that refers to the first."""
        rest = rest.strip(" ,.?!")
        resolved = references.resolve(rest, context, find_request, find_request(rest))
        if resolved is not None:
            return resolved.calls[0] if len(resolved.calls) == 1 else None
        another = _ANOTHER.match(rest)
        if self.tools[first.tool_id].spec.writes and another is None:
            return self._for_more_devices(first, rest)
        fragment = Fragment(rest[another.end() :] if another else rest, corrects=another is not None, is_marked=False)
        kinds = {Reader.DURATION, *TIMES} if another else {Reader.PLACE, *TIMES}
        args = self._change(DoneCall(first.tool_id, first.args, None), fragment, kinds)
        return None if args is None else PlannedCall(first.tool_id, args, first.say)

    def _for_more_devices(self, first: PlannedCall, rest: str) -> PlannedCall | None:
        """Returns the second of "turn off the lights in the kitchen and the hall", or "… and the fan"."""
        if self.kind_of(first.tool_id, "entity") is not Reader.DEVICE:
            return None
        args = change_device(Fragment(rest), first.args)
        return None if args is None else PlannedCall(first.tool_id, args, first.say)

    def is_whole(self, text: str) -> bool:
        """Whether the text may be a complete follow-up or correction, whatever was said before it."""
        if len(text) > MAX_CHARS:
            return False
        if _AGAIN.fullmatch(text) or UNDO.fullmatch(text) or sums.is_whole(text):
            return True
        for pattern in (_LEAD, _CORRECTION):
            lead, rest = _strip_lead(text, pattern)
            fragment = Fragment(rest.strip(" ,.!?"), corrects=pattern is _CORRECTION)
            if lead and any(read(kind, fragment, None) is not None for kind in _TOLD_BY_THEMSELVES):
                return True
        return False

    def takes_text(self, call: PlannedCall) -> bool:
        """Whether an argument of the call is any words, to which a whole clause may belong."""
        kinds = {self.kind_of(call.tool_id, name) for name in call.args}
        return not kinds.isdisjoint({Reader.TEXT, Reader.ITEMS, Reader.EXPRESSION, None})

    def _allowed(self, found: Understood, mode: Mode) -> Understood:
        calls = found.calls if isinstance(found, Run) else (found.call,) if isinstance(found, Ask) else ()
        for call in calls:
            modes = self.tools[call.tool_id].spec.allowed_modes
            if mode not in modes:
                return Say(replies.only_in(modes))
        return found

    # Changing an argument.

    def _change(self, call: DoneCall, fragment: Fragment, kinds: set[Reader] | None = None) -> dict[str, Any] | None:
        """Returns the arguments of the call with what the fragment says; None if it says something else."""
        tool = self.tools.get(call.tool_id)
        if tool is None or not fragment.text:
            return None
        if self.kind_of(call.tool_id, "entity") is Reader.DEVICE and "entity" in _properties(tool):
            made = change_device(fragment, call.args)
            if made is not None:
                return self._checked(tool, call, made)
        for kind in _CHANGE_ORDER:
            if kinds is not None and kind not in kinds:
                continue
            for name in _properties(tool):
                if self.kind_of(call.tool_id, name) is not kind:
                    continue
                value = read(kind, fragment, call.args.get(name))
                if value is not None and (made := self._checked(tool, call, _with(call.args, name, value, kind))):
                    return made
        return None

    def _change_all(self, call: DoneCall, fragment: Fragment) -> dict[str, Any] | None:
        """Like `_change`, but the fragment may say two things: "in Paris tomorrow"."""
        if (amount := self._change(call, fragment, {Reader.QUANTITY})) is not None:
            return amount
        words = fragment.text.split()
        for at in range(1, len(words) if len(words) <= MAX_SPLIT_WORDS else 0):
            first = replace(fragment, text=" ".join(words[:at]).rstrip(","))
            kinds = {Reader.PLACE, Reader.QUANTITY, Reader.DURATION, *TIMES}
            once = self._change(call, first, kinds)
            if once is None:
                continue
            second = replace(fragment, text=" ".join(words[at:]))
            twice = self._change(replace(call, args=once), second, kinds | {Reader.UNIT})
            if twice is not None and sum(twice.get(name) != call.args.get(name) for name in twice) >= 2:
                return twice
        _, _, explained = fragment.text.rpartition(", ")
        # "And bonfire night, 5 November?"
        by_date = (
            self._change(call, replace(fragment, text=explained), {*TIMES}) if explained != fragment.text else None
        )
        return self._change(call, fragment) or by_date

    def _checked(self, tool: Tool, call: DoneCall, args: dict[str, Any]) -> dict[str, Any] | None:
        complete, _ = tool.arguments.complete(args)
        return args if args != call.args and tool.arguments.accepts(complete) else None

    # Follow-ups.

    def _follow(self, text: str, context: Context, find_request: FindRequest) -> Understood | None:
        request, last = context.request, context.last
        if request is None or last is None:
            return None
        misheard = _MISHEARD_LEAD.match(text)
        if misheard is not None and is_place(text[misheard.end() :].strip(" .?!")):
            text = f"and in {text[misheard.end() :]}"
        lead, rest = _strip_lead(text, _LEAD)
        rest = rest if lead else _WEAK_LEAD.sub("", rest)
        rest, ending = _strip_end(rest, _LEAD_END)
        rest = rest.strip(" ,.!?")
        another = _ANOTHER.match(rest)
        rest = rest[another.end() :] if another else rest
        is_step = find_step(rest) is not None
        is_marked = bool(lead) or another is not None or is_step or _TOO.search(ending) is not None
        if not rest or (not is_marked and (last is not request or small_talk.find(words_of(rest)) is not None)):
            return None
        fragment = Fragment(rest, corrects=another is not None, is_marked=is_marked)
        for call in reversed(request.calls):
            tool = self.tools.get(call.tool_id)
            if tool is None or (not is_marked and tool.spec.writes and (call.succeeded or call.waits)):
                continue
            if (sibling := self._to_sibling(call, fragment)) is not None:
                return Run((sibling,))
            args = self._complete(call, fragment)
            if args is None and len(rest.split()) <= MAX_FRAGMENT_WORDS[is_marked]:
                args = self._change_all(call, fragment)
            if args is None:
                continue
            planned = PlannedCall(call.tool_id, args, None)
            if (
                tool.spec.writes
                and call.succeeded
                and not self._adds(call, args, f"{lead} {ending}", another is not None)
            ):
                return Ask(replies.the_same_with(rest), planned)
            return Run((planned,))
        return self._change_subject(rest, context, find_request) if lead else None

    def _adds(self, call: DoneCall, args: Mapping[str, Any], around: str, is_another: bool) -> bool:
        """Whether the text clearly asks to do the same once more, for something else. `around` are the words before and
        after what it names."""
        if is_another or _TOO.search(around):
            return True
        changed = {self.kind_of(call.tool_id, name) for name in args if args[name] != call.args.get(name)}
        if args.get("action") in ("up", "down"):
            return True
        if changed == {Reader.ITEMS}:
            return re.search(r"\b(?:and|plus)\b", around) is not None
        return changed == {Reader.DEVICE}

    def _complete(self, call: DoneCall, fragment: Fragment) -> dict[str, Any] | None:
        """Fills what was missing when the call was made: the text answers a question such as "For when?"."""
        if call.result is None or call.result.ok or call.waits:
            return None
        empty = [name for name, value in call.args.items() if value == ""]
        kinds = [self.kind_of(call.tool_id, name) for name in empty]
        if len(empty) != 1 or kinds[0] is None:
            return None
        kind = kinds[0]
        if kind in (Reader.TEXT, Reader.ITEMS):
            return {**call.args, empty[0]: fragment.text}
        value = read(kind, replace(fragment, corrects=True), None)
        return None if value is None else {**call.args, empty[0]: value}

    def _to_sibling(self, call: DoneCall, fragment: Fragment) -> PlannedCall | None:
        """Asks for the forecast instead of the weather if a whole week is meant, and the other way round."""
        sibling = self.tools.get(_SIBLINGS.get(call.tool_id, ""))
        if sibling is None:
            return None
        kept = {name: value for name, value in call.args.items() if name == "location"}
        if sibling.id == "get_forecast" and _WEEK.fullmatch(fragment.text):
            return PlannedCall(sibling.id, {**kept, "days": 7}, None)
        if sibling.id == "get_weather" and not _WEEK.fullmatch(fragment.text):
            args = self._change(DoneCall(sibling.id, kept, None), fragment, {*TIMES})
            return None if args is None else PlannedCall(sibling.id, args, None)
        return None

    def _change_subject(self, rest: str, context: Context, find_request: FindRequest) -> Run | None:
        """Asks for something else about the same place: "and the weather?" """
        for pattern in _SUBJECTS:
            found = find_request(pattern.format(rest))
            if found is None or len(found.calls) != 1 or found.query is not None:
                continue
            [call] = found.calls
            tool = self.tools[call.tool_id]
            if tool.spec.writes or any(isinstance(value, str) and value == rest for value in call.args.values()):
                continue
            places = [name for name in _properties(tool) if self.kind_of(tool.id, name) is Reader.PLACE]
            if context.place is not None and len(places) == 1 and places[0] not in call.args:
                return Run((replace(call, args={**call.args, places[0]: context.place}),))
            return found
        return None

    # Corrections.

    def _correct(self, text: str, context: Context, find_request: FindRequest, plain: Run | None) -> Understood | None:
        request = context.request
        if request is None:
            return None
        lead, rest = _strip_lead(text, _CORRECTION)
        was_asked = context.last is not None and context.last.answer == replies.WHAT_INSTEAD
        rest, ending = _strip_end(rest, _CORRECTION_END)
        rest = rest.strip(" ,.!?")
        marks = (
            bool(lead)
            or was_asked
            or bool(re.search(r"\b(?:mean|meant|ment|said|say|instead|rather|sorry)\b", ending, re.I))
        )
        for old, new in _opposed(rest):
            found = self._correct_named(request.calls, old, new)
            if found is not None:
                return found
        if not marks or not rest:
            return None
        whole = plain if rest == text else find_request(rest)
        if whole is not None:
            return self._redo_whole(request.calls, whole, lead)
        if plain is not None:
            return None
        for call in reversed(request.calls):
            args = self._change_all(call, Fragment(rest, corrects=True))
            if args is not None:
                return self._redo(call, args)
        return None

    def _correct_named(self, calls: tuple[DoneCall, ...], old: str, new: str) -> Understood | None:
        """Reads "not Paris, Lyon": the old words tell which argument is meant."""
        for call in reversed(calls):
            for name, value in call.args.items():
                if not isinstance(value, str | int | float) or isinstance(value, bool):
                    continue
                was, said = write_digits(str(value).lower()), write_digits(old.lower().strip(" ,.!?"))
                if re.search(rf"\b{re.escape(said)}\b", was) is None:
                    continue
                fragment = Fragment(new.strip(" ,.!?"), corrects=True)
                args = self._change_all(call, fragment)
                if args is None and isinstance(value, str) and self.kind_of(call.tool_id, name) is not None:
                    changed = fragment.text.join(re.split(rf"\b{re.escape(said)}\b", was, maxsplit=1))
                    args = self._checked(self.tools[call.tool_id], call, {**call.args, name: changed})
                if args is not None:
                    return self._redo(call, args)
        return None

    def _instead(self, text: str, resolved: Run, context: Context) -> Run:
        """Takes back what was done if the user wants something else instead: "on second thoughts put it on my list"."""
        done = context.request.calls if context.request is not None else ()
        if _INSTEAD.search(text) is None or len(done) != 1 or not all(map(self._writes, resolved.calls)):
            return resolved
        undoing = undo(done[0], corrects=True)
        if undoing is None or undoing.tool_id in {call.tool_id for call in resolved.calls}:
            return resolved
        return Run((undoing, *resolved.calls))

    def _writes(self, call: PlannedCall) -> bool:
        return self.tools[call.tool_id].spec.writes

    def _redo_whole(self, calls: tuple[DoneCall, ...], whole: Run, lead: str) -> Understood | None:
        """A whole request after "no" takes the place of a timer or an alarm that was just set; others stay."""
        done = next((call for call in reversed(calls) if call.succeeded), None)
        undoing = None if done is None else undo(done, corrects=True)
        if undoing is None or len(whole.calls) != 1 or not self.tools[whole.calls[0].tool_id].spec.writes:
            return whole
        same_kind = undo(replace(done, tool_id=whole.calls[0].tool_id)) if done is not None else None
        is_meant = re.search(r"\b(?:meant|mean|said|wanted|no|actually|make|change)\b", lead, re.IGNORECASE)
        if undoing.tool_id != "cancel_reminder" or same_kind is None or not is_meant:
            return whole
        return whole if whole.calls[0].tool_id == "cancel_reminder" else Run((undoing, *whole.calls))

    def _redo(self, call: DoneCall, args: dict[str, Any]) -> Understood:
        """Makes the call again with other arguments. What it has done is undone, if that is possible."""
        planned = PlannedCall(call.tool_id, args, None)
        if not self.tools[call.tool_id].spec.writes or not call.succeeded:
            return Run((planned,))
        undoing = undo(call, corrects=True)
        return Run((planned,) if undoing is None else (undoing, planned))

    def _continue_sum(self, text: str, context: Context) -> Run | None:
        """Goes on with the last result: "plus ten", "half of that"."""
        number = context.number
        if number is None or sums.CALCULATE not in self.tools:
            return None
        _, rest = _strip_lead(text, _LEAD)
        expression = sums.continued(dict.fromkeys((text, rest)), number)
        return None if expression is None else Run((PlannedCall(sums.CALCULATE, {"expression": expression}, None),))

    # Again, and undone.

    def _again(self, text: str, context: Context) -> Understood | None:
        request = context.request
        if request is None or _AGAIN.fullmatch(text) is None:
            return None
        calls = [call for call in request.calls if call.tool_id in self.tools]
        planned = tuple(PlannedCall(call.tool_id, call.args, None) for call in calls)
        written = [call for call in calls if self.tools[call.tool_id].spec.writes]
        if not written:
            return Run(planned) if planned else None
        if len(calls) == 1 and (written[0].succeeded or written[0].waits):
            return Ask(replies.did_you_mean(request.text.strip().rstrip(".!?")), planned[0])
        return Run(planned) if len(calls) == 1 else None

    def _undo(self, text: str, context: Context, plain: Run | None) -> Understood | None:
        match = UNDO.fullmatch(text)
        request = context.request
        if match is None or request is None:
            return None
        if match["what"] in ("event", "meeting", "appointment") or match["where"]:
            if context.event is None:
                return Say(replies.WHICH_EVENT) if plain is None else None
            return Run((PlannedCall("calendar_delete_event", {"event": context.event}, None),))
        if match["what"] in ("timer", "alarm", "reminder"):
            reminder = context.reminder
            found = undo(reminder) if reminder is not None and reminder.data.get("kind") == match["what"] else None
            return None if found is None else Run((found,))
        if plain is not None:
            return None
        done = [call for call in request.calls if call.succeeded and self.tools[call.tool_id].spec.writes]
        undoing = [found for call in done if (found := undo(call)) is not None and found.tool_id in self.tools]
        if undoing:
            return Run(tuple(undoing))
        if (listed := context.listed_reminder) is not None and not done:
            return Run((PlannedCall("cancel_reminder", {"reminder": listed}, None),))
        if context.event is not None and request is context.last and not done:
            return Run((PlannedCall("calendar_delete_event", {"event": context.event}, None),))
        return Say(replies.CANNOT_UNDO) if done and request is context.last else None


def _opposed(text: str) -> Iterator[tuple[str, str]]:
    """Yields what may be wrong and what is meant instead: "not Paris, Lyon", "not the fan the light", "Lyon, not "
    "Paris"."""
    if match := _NOT_THIS.fullmatch(text):
        yield match["old"], match["new"]
    words = text.split()
    if words[:1] and words[0].lower() == "not" and len(words) <= MAX_SPLIT_WORDS:
        for at in range(len(words) - 1, 1, -1):
            yield (
                re.sub(r"^(?:the|my|at|in|on|for)\s+", "", " ".join(words[1:at]), flags=re.IGNORECASE),
                " ".join(words[at:]),
            )
    if match := _THIS_NOT.fullmatch(text):
        yield match["old"], match["new"]


def _properties(tool: Tool) -> Iterator[str]:
    return iter(tool.spec.parameters.get("properties", {}))


def _with(args: Mapping[str, Any], name: str, value: Any, kind: Reader) -> dict[str, Any]:
    """Replaces an argument, and others that were made from the same words: an event's end follows its start."""
    made = {**args, name: value}
    old = args.get(name)
    if isinstance(old, str) and old and isinstance(value, str):
        for other, was in args.items():
            if other != name and isinstance(was, str) and old in was and kind in TIMES:
                made[other] = was.replace(old, value)
    if kind is Reader.QUANTITY:
        made.pop("value", None)
    return made


def _strip_lead(text: str, pattern: re.Pattern[str]) -> tuple[str, str]:
    """Returns the words that introduce a fragment, and the rest; nothing and the text if they do not introduce one."""
    at, strong = 0, False
    while at < len(text) and (match := pattern.match(text, at)):
        strong = strong or match["strong"] is not None
        at = match.end()
    return (text[:at].strip().lower(), text[at:]) if strong else ("", text)


def _strip_end(text: str, pattern: re.Pattern[str]) -> tuple[str, str]:
    """Returns the text without the words at its end that match, however many, and these words."""
    end = ""
    while (match := pattern.search(text)) and match.start() > 0:
        text, end = text[: match.start()], match[0] + end
    return text, end
