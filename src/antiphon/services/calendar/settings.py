"""The error for settings of the calendar that cannot work."""

from antiphon.errors import AntiphonError


class CalendarSettingsError(AntiphonError):
    """The calendar is not set up correctly. The message says what to change."""

    code = "calendar_settings"
