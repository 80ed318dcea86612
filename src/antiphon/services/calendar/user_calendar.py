"""The calendar of one user: what tools get. It checks the calendars' names, sorts, and adds meeting links."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from antiphon.services.calendar import failures
from antiphon.services.calendar.backend import CalendarBackend
from antiphon.services.calendar.links import MeetingLinks
from antiphon.tools.capabilities.calendar import Busy, CalendarInfo, Created, Event, EventDraft
from antiphon.tools.errors import ErrorType, ToolError

PRIMARY: Final = "primary"
"""Stands for the first of the user's own calendars, whatever its name is."""


class UserCalendar:
    def __init__(self, backend: CalendarBackend, links: MeetingLinks, zone: ZoneInfo) -> None:
        self._backend = backend
        self._links = links
        self._zone = zone

    async def calendars(self) -> Sequence[CalendarInfo]:
        return await self._backend.calendars()

    async def events(self, start: datetime, end: datetime, calendars: Sequence[str] | None = None) -> Sequence[Event]:
        wanted = await self._own_of(calendars)
        if not wanted:
            return []
        found = await self._backend.events(_whole(start), _whole(end), wanted, self._zone)
        return sorted(found, key=lambda event: (event.start.astimezone(UTC), event.end.astimezone(UTC), event.id))

    async def busy(self, start: datetime, end: datetime, calendars: Sequence[str] | None = None) -> Sequence[Busy]:
        wanted = await self._chosen(calendars)
        found = await self._backend.busy(_whole(start), _whole(end), [each.name for each in wanted], self._zone)
        return sorted(found, key=lambda busy: (busy.start.astimezone(UTC), busy.end.astimezone(UTC), busy.calendar))

    async def create(self, draft: EventDraft, *, with_link: bool) -> Created:
        calendar = (await self._chosen(None))[0].name
        if with_link:
            draft = replace(draft, link=await self._links.make(draft))
        try:
            is_new = await self._backend.add(draft, self._zone)
        except ToolError as error:
            # If it is not known whether the event was stored, its link must stay valid.
            if draft.link is not None and not error.partial_side_effects:
                await self._links.drop(draft.link)
            raise
        if not is_new and draft.link is not None:
            await self._links.drop(draft.link)
        return Created(draft.uid, calendar, is_new, draft.link if is_new else None)

    async def delete(self, id: str) -> None:
        await self._backend.remove(id, self._zone)

    async def _own_of(self, names: Sequence[str] | None) -> list[str]:
        return [each.name for each in await self._chosen(names) if each.is_own]

    async def _chosen(self, names: Sequence[str] | None) -> list[CalendarInfo]:
        """Finds calendars by their names; by default, all of the user's own."""
        known = await self._backend.calendars()
        own = [each for each in known if each.is_own]
        if not own:
            raise ToolError(ErrorType.NOT_FOUND, "There is no calendar in your account yet.")
        if names is None:
            return own
        by_name = {PRIMARY: own[0]} | {each.name.casefold(): each for each in known}
        for name in names:
            if name.casefold() not in by_name:
                raise failures.unknown_calendar(name, [each.name for each in known])
        return list({by_name[name.casefold()].name: by_name[name.casefold()] for name in names}.values())


def _whole(moment: datetime) -> datetime:
    """Drops parts of a second, which calendars do not have."""
    return moment.replace(microsecond=0)
