"""Lets callers in: counts their connections, finds out who they are, and refuses those who are blocked."""

from typing import Final

from antiphon.clock import Clock
from antiphon.protocol.closing import BLOCKED, FULL, UNAUTHENTICATED
from antiphon.security.admission import AdmissionRefused, Caller, RefusalKind
from antiphon.security.quota import Account, Kind, Quota
from antiphon.security.tokens import is_token
from antiphon.server.authenticator import Authenticator, TooManyWrongTokens

NO_TOKEN: Final = "A valid token is required: create one with `antiphon token new` and use it as the API key."


class Admission:
    """The same rules for every endpoint. Each method raises `AdmissionRefused`."""

    def __init__(self, authenticator: Authenticator, quota: Quota, clock: Clock) -> None:
        self._authenticator = authenticator
        self._quota = quota
        self._clock = clock

    @property
    def requires_token(self) -> bool:
        return self._authenticator.required

    def count(self, account: Account) -> None:
        """Counts a connection. The address is counted before the token is checked, so that guessing is limited."""
        wait_s = self._quota.take(Kind.CONNECTION, account, 1, self._clock.monotonic())
        if wait_s > 0:
            raise AdmissionRefused(RefusalKind.FULL, FULL.reason, retry_after_s=wait_s)

    async def identify(self, token: str | None, *, address: str | None, route: str) -> Caller:
        """Finds out who shows this token, and counts a connection of that user."""
        try:
            caller = await self._authenticator.identify(token, address=address, route=route)
        except TooManyWrongTokens as error:
            raise AdmissionRefused(RefusalKind.WRONG_TOKENS, str(error), retry_after_s=error.wait_s) from None
        if caller is None:
            raise AdmissionRefused(RefusalKind.UNAUTHENTICATED, UNAUTHENTICATED.reason)
        self.count(Account(user=caller.user))
        until_ms = await self._authenticator.blocked_until(caller.user)
        if until_ms is not None:
            left_s = max(0.0, (until_ms - self._clock.now_ms()) / 1000)
            raise AdmissionRefused(RefusalKind.BLOCKED, BLOCKED.reason, retry_after_s=left_s, until_ms=until_ms)
        return caller

    async def admit(self, key: str | None, *, address: str | None, route: str) -> Caller:
        """Admits the client of another protocol, whose API key is one of our tokens.

        Vendors' SDKs cannot connect without a key. Where no token is required, a key that does not look like one of our
        tokens is therefore ignored.
        """
        self.count(Account(address=address))
        if key is not None and not self.requires_token and not is_token(key):
            key = None
        try:
            return await self.identify(key, address=address, route=route)
        except AdmissionRefused as refused:
            if refused.kind is RefusalKind.UNAUTHENTICATED:
                raise AdmissionRefused(refused.kind, NO_TOKEN) from None
            raise
