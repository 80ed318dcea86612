"""A stand-in for the internet: one local server, which a test tells how to answer."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest_asyncio

from antiphon.clock import SystemClock
from antiphon.services.http.client import WebClient
from antiphon.services.http.network import Authority
from antiphon.services.web.fetch import PublicFetch
from tests.fakes.local_http import FakeInternet, Received, Reply, Service, serving

PUBLIC = "93.184.215.14"


@dataclass
class World(Service):
    internet: FakeInternet = field(init=False)
    clients: list[WebClient] = field(default_factory=list)
    fetches: list[PublicFetch] = field(default_factory=list)

    def client(self, *trusted: Authority) -> WebClient:
        made = WebClient(self.internet.network(), frozenset(trusted))
        self.clients.append(made)
        return made

    def fetch(self) -> PublicFetch:
        made = PublicFetch(self.client(), SystemClock())
        self.fetches.append(made)
        return made

    def answer(self, request: Received) -> Reply:
        return Reply("fine")


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    async with serving(World()) as made:
        made.internet = FakeInternet(made.server, {"example.org": [[PUBLIC]]})
        yield made
        for fetch in made.fetches:
            await fetch.aclose()
        for client in made.clients:
            await client.aclose()
