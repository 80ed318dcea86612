"""Servers that the tests of a module share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wire.served import UNLIMITED, Served, add_token, serve, served_anywhere


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that requires no token."""
    with served_anywhere(tmp_path_factory.mktemp("served")) as url:
        yield url


@pytest.fixture(scope="module")
def locked_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("locked")


@pytest.fixture(scope="module")
def tokens(locked_folder: Path) -> dict[str, str]:
    """The tokens of two users of the locked server."""
    return {user: add_token(locked_folder, user) for user in ("ann", "bob")}


@pytest.fixture(scope="module")
def locked(locked_folder: Path, tokens: dict[str, str]) -> Iterator[Served]:
    """A server that requires tokens."""
    with serve(locked_folder, limits=UNLIMITED, server={"auth": "required"}) as served:
        yield served
