"""What tools do with the lists of one user."""

from collections.abc import Sequence
from typing import Final

from antiphon.clock import Clock
from antiphon.services.lists.matching import find_near, is_spelled_alike
from antiphon.storage.lists import ListFull, ListItem, ListStore
from antiphon.tools.capabilities.lists import Added, ListContent, Removed
from antiphon.tools.context import Offer, SessionView, ToolView
from antiphon.tools.errors import ErrorType, ToolError
from antiphon.words.lists import NOTES, SHOPPING, TO_DO, enumerate_words, item_key, list_name, speak_list, split_items

MAX_ITEMS: Final = 200
"""The most items of a list. Nobody listens to more."""
MAX_TOTAL: Final = 2_000
"""The most items of all lists of a user together."""
MAX_ITEM_CHARS: Final = 500
MAX_NAME_CHARS: Final = 60
MAX_CHOICES_SAID: Final = 5


def offer_lists(store: ListStore, clock: Clock) -> Offer:
    def offer(session: SessionView, tool: ToolView) -> UserLists:
        return UserLists(store, session.user, clock)

    return offer


class UserLists:
    def __init__(self, store: ListStore, user: str, clock: Clock) -> None:
        self._store = store
        self._user = user
        self._clock = clock

    async def add(self, item: str, list: str | None = None) -> Added:
        known = await self.all()
        name = _only(known) or SHOPPING if list is None else _find_or_make(list, known)
        texts = split_items(item, name)
        if not texts:
            raise ToolError(ErrorType.VALIDATION, "I didn't hear what to add.", suggestion="Give the item in words.")
        if any(len(text) > MAX_ITEM_CHARS for text in texts):
            raise ToolError(ErrorType.VALIDATION, f"That's too long for one item of {speak_list(name)}.")
        now_ms = self._clock.now_ms()
        items = [ListItem(self._user, name, item_key(text), text, now_ms) for text in texts]
        try:
            added = await self._store.add(items, max_items=MAX_ITEMS, max_total=MAX_TOTAL)
        except ListFull:
            raise ToolError(
                ErrorType.PERMANENT,
                f"There's no more room on {speak_list(name)}. Please remove something first.",
                suggestion=f"A list has at most {MAX_ITEMS} items, and all lists together have {MAX_TOTAL}.",
            ) from None
        new = {each.key for each in added}
        duplicates = {each.key: each.text for each in items if each.key not in new}
        return Added(name, tuple(each.text for each in added), tuple(duplicates.values()))

    async def all(self) -> Sequence[ListContent]:
        found: dict[str, list[str]] = {}
        for item in await self._store.items(self._user):
            found.setdefault(item.list, []).append(item.text)
        return [ListContent(name, tuple(texts)) for name, texts in sorted(found.items())]

    async def show(self, list: str) -> ListContent:
        known, name = await self.all(), list_name(list)
        # People who ask for one of these do not misspell it: it is only empty.
        is_empty = name in (NOTES, SHOPPING, TO_DO) and all(each.name != name for each in known)
        return ListContent(name, ()) if is_empty else _find(list, known)

    async def remove(self, item: str, list: str | None = None) -> Removed:
        known = await self.all()
        if list is not None:
            return await self._remove_from(_find(list, known), item)
        holding = [each for each in known if find_near(item, each.items, str)]
        holding = holding or [each for each in known if any(_are_on(each, item))]
        if not holding:
            raise ToolError(
                ErrorType.NOT_FOUND,
                f"I can't find {item} on any of your lists.",
                suggestion=_tell_lists(known),
            )
        if len(holding) > 1:
            raise _which([speak_list(each.name) for each in holding], f"{_capital(item)} is on several lists.")
        return await self._remove_from(holding[0], item)

    async def clear(self, list: str | None = None) -> ListContent:
        known = await self.all()
        name = _only(known) if list is None else _find(list, known).name
        if name is None:
            raise ToolError(ErrorType.NOT_FOUND, "You don't have any lists.")
        content = next(each for each in known if each.name == name)
        await self._store.clear(self._user, name)
        return content

    async def _remove_from(self, content: ListContent, said: str) -> Removed:
        # The whole first, since an item may have an "and" or a comma in it.
        asked = [said] if find_near(said, content.items, str) else split_items(said, content.name)
        keys: dict[str, str] = {}
        missing: list[str] = []
        for each in asked:
            found = find_near(each, content.items, str)
            if len(found) > 1:
                raise _which(found, f"There are {len(found)} things like that on {speak_list(content.name)}.")
            if found:
                keys[item_key(found[0])] = found[0]
            else:
                missing.append(each)
        if not keys:
            raise ToolError(
                ErrorType.NOT_FOUND,
                f"{_capital(enumerate_words(missing, 'or') or said)} isn't on {speak_list(content.name)}.",
                suggestion=f"It has: {', '.join(content.items[:20])}.",
            )
        removed = await self._store.remove(self._user, content.name, list(keys))
        return Removed(content.name, tuple(item.text for item in removed), tuple(missing))


def _only(known: Sequence[ListContent]) -> str | None:
    """Returns the list that is meant by "the list": the only one, or that for shopping; None if there is none. Notes do
    not count, since people do not call them a list."""
    lists = [each.name for each in known if each.name != NOTES]
    if SHOPPING in lists:
        return SHOPPING
    if len(lists) > 1:
        raise _which([speak_list(name) for name in lists], "You have several lists.")
    return lists[0] if lists else None


def _are_on(content: ListContent, said: str) -> Sequence[bool]:
    return [bool(find_near(each, content.items, str)) for each in split_items(said, content.name)]


def _find(said: str, known: Sequence[ListContent]) -> ListContent:
    """Finds a list by a name that may be nearly right. Raises `ToolError`."""
    name = list_name(said)
    found = [each for each in known if each.name == name] or find_near(name, known, lambda each: each.name)
    if len(found) > 1:
        raise _which([speak_list(each.name) for each in found], "Several of your lists are called something like that.")
    if found:
        return found[0]
    if name == NOTES:
        raise ToolError(ErrorType.NOT_FOUND, "You don't have any notes.", suggestion=_tell_lists(known))
    others = f" You have {_speak_names(known)}." if known else " You don't have any lists yet."
    raise ToolError(
        ErrorType.NOT_FOUND, f"There's nothing on {speak_list(name)}.{others}", suggestion=_tell_lists(known)
    )


def _find_or_make(said: str, known: Sequence[ListContent]) -> str:
    """Returns the list of that name, or one whose name is nearly the same, or the name of a new one."""
    name = list_name(said)
    if not name or len(name) > MAX_NAME_CHARS:
        raise ToolError(ErrorType.VALIDATION, f"A list's name has 1 to {MAX_NAME_CHARS} characters.")
    names = [each.name for each in known if each.name != NOTES]
    near = [each for each in names if is_spelled_alike(each, name)]
    return near[0] if name not in names and len(near) == 1 else name


def _which(choices: Sequence[str], reason: str) -> ToolError:
    asked = enumerate_words(choices[:MAX_CHOICES_SAID], "or")
    return ToolError(
        ErrorType.VALIDATION,
        f"{reason} Which one do you mean: {asked}?",
        suggestion="Ask the user which one, and call again with its full name.",
        details={"choices": [*choices]},
    )


def _speak_names(known: Sequence[ListContent]) -> str:
    return enumerate_words([speak_list(each.name).removeprefix("your ") for each in known])


def _tell_lists(known: Sequence[ListContent]) -> str:
    names = ", ".join(each.name for each in known)
    return f"The user's lists are: {names}." if names else "The user has no lists yet."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
