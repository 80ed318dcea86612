"""Makes the limits of users and addresses hold for all processes together."""

import asyncio
from typing import Final

from antiphon.clock import Clock
from antiphon.security.quota import Quota
from antiphon.storage.base import StorageError
from antiphon.storage.limits import LimitStore
from antiphon.telemetry.log import get_logger

SHARE_EVERY_S: Final = 1.0
"""For so long, and for a tenth of a limit, a process decides alone. In return no request waits for the database."""

log = get_logger(__name__)


async def share_quota(quota: Quota, limits: LimitStore, clock: Clock) -> None:
    """Tells other processes what was used here, and learns what was used there, until it is cancelled."""
    is_down = False
    while True:
        await asyncio.sleep(SHARE_EVERY_S)
        try:
            await share_once(quota, limits, clock)
            is_down = False
        except StorageError as error:
            # The limits hold in this process. What was used is told as soon as the database can be reached.
            if not is_down:
                log.warning("limits_not_shared", error=str(error))
            is_down = True


async def share_once(quota: Quota, limits: LimitStore, clock: Clock) -> None:
    now_s = clock.monotonic()
    uses_s = quota.unshared(now_s)
    if uses_s:
        # As of before the database was asked: nobody waits longer than they were told because it takes its time.
        quota.share(uses_s, await limits.use(uses_s), now_s)
