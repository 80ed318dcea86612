"""Makes the limits of users and addresses hold for all processes together."""

import asyncio
from functools import partial
from typing import Final

from antiphon.clock import Clock
from antiphon.security.quota import Quota
from antiphon.storage.changes import repeat
from antiphon.storage.limits import LimitStore

SHARE_EVERY_S: Final = 1.0
"""For so long, and for a tenth of a limit, a process decides alone. In return no request waits for the database."""


async def share_quota(quota: Quota, limits: LimitStore, clock: Clock) -> None:
    """Tells other processes what was used here, and learns what was used there, until it is cancelled.

    While the database is away, the limits hold in this process, and what was used is told afterwards.
    """
    await repeat(partial(share_once, quota, limits, clock), partial(asyncio.sleep, SHARE_EVERY_S), "limits_not_shared")


async def share_once(quota: Quota, limits: LimitStore, clock: Clock) -> None:
    now_s = clock.monotonic()
    uses_s = quota.unshared(now_s)
    if uses_s:
        # As of before the database was asked: nobody waits longer than they were told because it takes its time.
        quota.share(uses_s, await limits.use(uses_s), now_s)
