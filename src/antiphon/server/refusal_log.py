"""One line in the log for each request that was refused, as long as they are not too many."""

from typing import Any, Final

from antiphon.clock import Clock, SystemClock
from antiphon.security.quota import Account, Kind, Limit, Quota, Rate
from antiphon.telemetry.log import get_logger

LINES: Final = Limit(session=Rate(per_s=0.5, burst=100), address=Rate(per_s=0.05, burst=10))
"""How many lines there may be of one address, and of all of them together, which count as one session. A flood that
lasts for a day writes some 10 MB."""
MAX_CHARS: Final = 200
"""The most that is logged of a value that the client has chosen, such as a path."""

log = get_logger(__name__)


class RefusalLog:
    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._quota = Quota({Kind.LOG_LINE: LINES})
        self._left_out = 0

    def write(self, reason: str, *, address: str | None, route: str, **more: Any) -> None:
        """Never with a secret: `route` is a path without its query."""
        account = Account(session="all", address=address)
        if self._quota.take(Kind.LOG_LINE, account, 1, self._clock.monotonic()) > 0:
            self._left_out += 1
            return
        if self._left_out:
            more["lines_left_out"], self._left_out = self._left_out, 0
        shown = {name: value[:MAX_CHARS] if isinstance(value, str) else value for name, value in more.items()}
        log.warning("request_refused", reason=reason, address=address, route=route[:MAX_CHARS], **shown)
