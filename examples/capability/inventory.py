"""The inventory that tools of this project use: `context.use("inventory")`.

antiphon.toml names `offer`. A real one would open a pool of connections where this one reads a file.
"""

import csv
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

STOCK = Path(__file__).with_name("stock.csv")


class Inventory:
    """The stock, as one user may see it."""

    def __init__(self, counts: dict[str, int], user: str) -> None:
        self.user = user
        self._counts = counts

    async def count(self, item: str) -> int | None:
        """Returns None for an item that is not sold here."""
        return self._counts.get(item)


@asynccontextmanager
async def offer() -> AsyncIterator[Callable[[Any, Any], Inventory]]:
    """Opens the inventory with the server. What it yields is called for every run of a tool that uses it."""
    with STOCK.open(newline="") as file:
        counts = {row["item"]: int(row["count"]) for row in csv.DictReader(file)}
    yield lambda session, tool: Inventory(counts, session.user)
