"""Rate limits for sessions, users and addresses. Pure: the time is an argument."""

import math
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv6Address, ip_address
from typing import Final


class Kind(StrEnum):
    CONNECTION = "connection"
    MESSAGE = "message"
    """Messages of any kind, including audio frames: a flood of tiny frames contains only a few seconds of audio."""
    AUDIO_S = "audio_s"
    TOOL_CALL = "tool_call"
    WRONG_TOKEN = "wrong_token"
    LOG_LINE = "log_line"
    """A log line about a refused request."""


@dataclass(frozen=True, slots=True)
class Rate:
    per_s: float
    burst: float
    """How much may be taken at once after a pause."""


@dataclass(frozen=True, slots=True)
class Limit:
    """None means no limit. A user may have several sessions, and several users may share an address."""

    session: Rate | None = None
    user: Rate | None = None
    address: Rate | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """Who something is counted for. What is not known yet is None, and is not counted."""

    session: str | None = None
    user: str | None = None
    address: str | None = None


# Speech takes one second per second. The extra 1 % is for sound cards whose clocks run fast.
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
"""For one kind and one sort of account, about 4 MB. More are needed only in an attack from that many addresses."""


class Buckets:
    """One token bucket per key, each stored as one number: the time at which it will be full again."""

    def __init__(self, rate: Rate, max_buckets: int = MAX_BUCKETS) -> None:
        self._rate = rate
        self._max_buckets = max_buckets
        self._full_at_s: OrderedDict[str, float] = OrderedDict()

    @property
    def remembered(self) -> int:
        return len(self._full_at_s)

    def wait_s(self, key: str, amount: float, now_s: float) -> float:
        """Returns the seconds until `amount` can be taken; infinite if it never can."""
        if amount > self._rate.burst:
            return math.inf
        full_at_s = max(self._full_at_s.get(key, now_s), now_s) + amount / self._rate.per_s
        if key in self._full_at_s:
            self._full_at_s.move_to_end(key)  # a refused caller that asks again is not forgotten
        # Rounded to the microsecond, so that a caller that waits as long as told is not told to wait 1e-15 s more.
        return max(0.0, round(full_at_s - now_s - self._rate.burst / self._rate.per_s, 6))

    def take(self, key: str, amount: float, now_s: float) -> None:
        self._full_at_s[key] = max(self._full_at_s.get(key, now_s), now_s) + amount / self._rate.per_s
        self._full_at_s.move_to_end(key)
        self._forget(now_s)

    def _forget(self, now_s: float) -> None:
        """Removes full buckets, which equal missing ones. It checks two for each one that is added."""
        for _ in range(2):
            oldest, full_at_s = next(iter(self._full_at_s.items()))
            if full_at_s > now_s and len(self._full_at_s) <= self._max_buckets:
                return
            del self._full_at_s[oldest]
            if not self._full_at_s:
                return


_Touched = tuple[Buckets, str]
"""A bucket of an account, and its key."""


class Quota:
    """All limits of a process."""

    def __init__(self, limits: Mapping[Kind, Limit] = LIMITS, max_buckets: int = MAX_BUCKETS) -> None:
        self._buckets = {
            (kind, account): Buckets(rate, max_buckets)
            for kind, limit in limits.items()
            for account in ("session", "user", "address")
            if (rate := getattr(limit, account)) is not None
        }
        self.refusals: Counter[Kind] = Counter()
        """How often something was refused, by its kind, since the process started."""

    def take(self, kind: Kind, who: Account, amount: float, now_s: float, *, is_optional: bool = False) -> float:
        """Returns the seconds to wait: 0 if it was admitted and counted for all accounts, else nothing was counted.

        Infinite if `amount` is more than can ever be admitted at once. `now_s` is a monotonic time. `is_optional` says
        that the caller can do with less, so that it is no refusal.
        """
        touched = self._touched(kind, who)
        wait_s = _longest_wait_s(touched, amount, now_s)
        if wait_s == 0.0:
            for buckets, key in touched:
                buckets.take(key, amount, now_s)
        elif not is_optional:
            self.refusals[kind] += 1
        return wait_s

    def wait_s(self, kind: Kind, who: Account, amount: float, now_s: float) -> float:
        """Returns what `take` would return now, without counting anything."""
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
        """How many buckets are kept. This is not `__len__`, which would make an unused quota false."""
        return sum(buckets.remembered for buckets in self._buckets.values())


def _longest_wait_s(touched: Iterable[_Touched], amount: float, now_s: float) -> float:
    if not 0 <= amount < math.inf:
        raise ValueError(f"amount is {amount}; it must be finite and not negative")
    return max((buckets.wait_s(key, amount, now_s) for buckets, key in touched), default=0.0)


def _network(address: str | None) -> str | None:
    """Returns the account of an address. One customer has 2**64 IPv6 addresses, so they count as one."""
    if address is None or ":" not in address:
        return address
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    return str(parsed.ipv4_mapped or f"{IPv6Address(int(parsed) >> 64 << 64)}/64")
