"""Calendars behind one seam: local, on a CalDAV server, or Google's. `service.py` opens the one of the settings."""

from antiphon.services.calendar.service import CalendarService as CalendarService
from antiphon.services.calendar.service import open_calendar as open_calendar
