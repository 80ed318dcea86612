"""How much one session, one user and one address may ask for. Pure: the time is an argument."""

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv6Address, ip_address
from typing import Final


class Kind(StrEnum):
    CONNECTION = "connection"
    MESSAGE = "message"
    """Of either kind, frames of audio included: a flood of tiny frames has few seconds of sound in it."""
    AUDIO_S = "audio_s"
    TOOL_CALL = "tool_call"
    WRONG_TOKEN = "wrong_token"
    LOG_LINE = "log_line"
    """A line in the log about a client that is refused."""


@dataclass(frozen=True, slots=True)
class Rate:
    per_s: float
    burst: float
    """What may be taken at once after a rest."""


@dataclass(frozen=True, slots=True)
class Limit:
    """None is no limit. A user may have several sessions, and several users may share an address."""

    session: Rate | None = None
    user: Rate | None = None
    address: Rate | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """On whose account something is taken; what is not known yet is None and not counted."""

    session: str | None = None
    user: str | None = None
    address: str | None = None


# Speech takes a second a second; the hundredth more is for sound cards, whose clocks may run that fast.
SPEECH: Final = Rate(per_s=1.01, burst=30.0)
LIMITS: Final[Mapping[Kind, Limit]] = {
    Kind.CONNECTION: Limit(user=Rate(5, 50), address=Rate(20, 200)),
    # A microphone sends 50 frames a second, so a burst of 30 seconds is 1,500 of them.
    Kind.MESSAGE: Limit(session=Rate(100, 2_000), user=Rate(400, 8_000), address=Rate(1_600, 32_000)),
    Kind.AUDIO_S: Limit(session=SPEECH, user=Rate(4, 120), address=Rate(16, 480)),
    Kind.TOOL_CALL: Limit(user=Rate(2, 60), address=Rate(8, 240)),
    Kind.WRONG_TOKEN: Limit(address=Rate(5 / 60, 5)),
}
MAX_BUCKETS: Final = 20_000
"""Of one kind for one sort of account, about 4 MB. More are only needed under attack from as many addresses."""


class Buckets:
    """One token bucket a key, each kept as one number: the time at which it will be full again."""

    def __init__(self, rate: Rate, max_buckets: int = MAX_BUCKETS) -> None:
        self._rate = rate
        self._max_buckets = max_buckets
        self._full_at_s: OrderedDict[str, float] = OrderedDict()

    @property
    def remembered(self) -> int:
        return len(self._full_at_s)

    def wait_s(self, key: str, amount: float, now_s: float) -> float:
        """Seconds until `amount` could be taken; infinite if it never can."""
        if amount > self._rate.burst:
            return math.inf
        full_at_s = max(self._full_at_s.get(key, now_s), now_s) + amount / self._rate.per_s
        if key in self._full_at_s:
            self._full_at_s.move_to_end(key)  # whoever is refused and asks again is not forgotten for it
        # Rounded to the microsecond, else a caller who waits as long as told may be told to wait for 1e-15 s more.
        return max(0.0, round(full_at_s - now_s - self._rate.burst / self._rate.per_s, 6))

    def take(self, key: str, amount: float, now_s: float) -> None:
        self._full_at_s[key] = max(self._full_at_s.get(key, now_s), now_s) + amount / self._rate.per_s
        self._full_at_s.move_to_end(key)
        self._forget(now_s)

    def _forget(self, now_s: float) -> None:
        """A full bucket is as good as none. Two are looked at each time one is added, so idle ones soon are gone."""
        for _ in range(2):
            oldest, full_at_s = next(iter(self._full_at_s.items()))
            if full_at_s > now_s and len(self._full_at_s) <= self._max_buckets:
                return
            del self._full_at_s[oldest]
            if not self._full_at_s:
                return


_Touched = tuple[Buckets, str]
"""A bucket that an account has."""


class Quota:
    """All limits of a process."""

    def __init__(self, limits: Mapping[Kind, Limit] = LIMITS, max_buckets: int = MAX_BUCKETS) -> None:
        self._buckets = {
            (kind, account): Buckets(rate, max_buckets)
            for kind, limit in limits.items()
            for account in ("session", "user", "address")
            if (rate := getattr(limit, account)) is not None
        }

    def take(self, kind: Kind, who: Account, amount: float, now_s: float) -> float:
        """Seconds to wait: 0 if it was admitted, which counts for all accounts; else nothing was counted for any.

        Infinite if `amount` is more than can ever be admitted at once. `now_s` is a clock that only grows.
        """
        touched = self._touched(kind, who)
        wait_s = _longest_wait_s(touched, amount, now_s)
        if wait_s == 0.0:
            for buckets, key in touched:
                buckets.take(key, amount, now_s)
        return wait_s

    def wait_s(self, kind: Kind, who: Account, amount: float, now_s: float) -> float:
        """What `take` would give now. Nothing is counted."""
        return _longest_wait_s(self._touched(kind, who), amount, now_s)

    def _touched(self, kind: Kind, who: Account) -> list[_Touched]:
        accounts = (("session", who.session), ("user", who.user), ("address", _network(who.address)))
        return [
            (buckets, key)
            for account, key in accounts
            if key is not None and (buckets := self._buckets.get((kind, account))) is not None
        ]

    @property
    def remembered(self) -> int:
        """How many buckets are kept. Not its length, by which a quota of which nothing was taken would be false."""
        return sum(buckets.remembered for buckets in self._buckets.values())


def _longest_wait_s(touched: Iterable[_Touched], amount: float, now_s: float) -> float:
    if not 0 <= amount < math.inf:
        raise ValueError(f"amount is {amount}; it must be finite and not negative")
    return max((buckets.wait_s(key, amount, now_s) for buckets, key in touched), default=0.0)


def _network(address: str | None) -> str | None:
    """The account of an address. One customer's line has 2**64 addresses of version 6, so they count as one."""
    if address is None or ":" not in address:
        return address
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    return str(parsed.ipv4_mapped or f"{IPv6Address(int(parsed) >> 64 << 64)}/64")
