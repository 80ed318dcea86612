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
SHARED_FROM: Final = 0.1
"""The part of a bucket that one process may give away before it tells the others. Below it, nothing is written."""
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
            self._remove(oldest)
            if not self._full_at_s:
                return

    def _remove(self, key: str) -> None:
        del self._full_at_s[key]


class SharedBuckets(Buckets):
    """Buckets of which other processes give something away, too."""

    def __init__(self, rate: Rate, max_buckets: int = MAX_BUCKETS) -> None:
        super().__init__(rate, max_buckets)
        self._unshared_s: dict[str, float] = {}
        """What was taken here since other processes were last told, as the time in which it fills up again."""

    def take(self, key: str, amount: float, now_s: float) -> None:
        self._unshared_s[key] = self._unshared_s.get(key, 0.0) + amount / self._rate.per_s
        super().take(key, amount, now_s)

    def unshared(self, now_s: float) -> Mapping[str, float]:
        """Returns what other processes should know: takings from buckets of which a tenth or more is used."""
        uses_s = {}
        for key, unshared_s in list(self._unshared_s.items()):
            used_s = self._full_at_s[key] - now_s
            if used_s <= 0:
                del self._unshared_s[key]
            elif unshared_s > 0 and used_s >= SHARED_FROM * self._rate.burst / self._rate.per_s:
                # A part of it may have filled up again.
                uses_s[key] = self._unshared_s[key] = min(unshared_s, used_s)
        return uses_s

    def share(self, key: str, use_s: float, full_in_s: float, now_s: float) -> None:
        """All processes together have used so much of the bucket that it is full again after that time. `use_s` of it
        was taken here, as `unshared` has told."""
        if key in self._full_at_s:
            self._unshared_s[key] = max(0.0, self._unshared_s.get(key, 0.0) - use_s)
            self._full_at_s[key] = now_s + full_in_s + self._unshared_s[key]

    def _remove(self, key: str) -> None:
        super()._remove(key)
        self._unshared_s.pop(key, None)


_Touched = tuple[Buckets, str]
"""A bucket of an account, and its key."""


class Quota:
    """All limits of a process."""

    def __init__(self, limits: Mapping[Kind, Limit] = LIMITS, max_buckets: int = MAX_BUCKETS) -> None:
        self._buckets = {
            # A session is in one process only.
            (kind, account): (Buckets if account == "session" else SharedBuckets)(rate, max_buckets)
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

    def unshared(self, now_s: float) -> Mapping[str, float]:
        """Returns what users and addresses have used here that other processes should know of, as the seconds in which
        it fills up again."""
        return {
            f"{kind}:{account}:{key}": use_s
            for (kind, account), buckets in self._buckets.items()
            if isinstance(buckets, SharedBuckets)
            for key, use_s in buckets.unshared(now_s).items()
        }

    def share(self, uses_s: Mapping[str, float], full_in_s: Mapping[str, float], now_s: float) -> None:
        """Notes that the other processes know of `uses_s`, and after how many seconds each bucket is full again."""
        for name, use_s in uses_s.items():
            kind, account, key = name.split(":", 2)
            buckets = self._buckets[Kind(kind), account]
            assert isinstance(buckets, SharedBuckets)
            buckets.share(key, use_s, full_in_s[name], now_s)

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
