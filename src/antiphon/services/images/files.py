"""The image files in the data folder, and whose they are.

Each image has a random name of 256 bits, and beside it a JSON file with its owner and prompt. The record is written
first and deleted last, so that a crash never leaves an image without an owner.
"""

import asyncio
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from antiphon.services.images.formats import MEDIA_TYPES, find_ending
from antiphon.telemetry.log import get_logger

ROUTE: Final = "/images/"
"""The beginning of the path at which the server has the images."""
NAME_BYTES: Final = 32
MAX_PROMPT_CHARS: Final = 4_000

_STEM: Final = r"[A-Za-z0-9_-]{43}"
_NAME: Final = re.compile(rf"(?P<stem>{_STEM})\.(?P<ending>{'|'.join(MEDIA_TYPES)})")
_PATH: Final = re.compile(rf"{ROUTE}({_NAME.pattern})")

log = get_logger(__name__)


class ImageRecord(Struct, frozen=True):
    """What is known about an image."""

    name: str
    user: str
    prompt: str
    model: str
    at_ms: int
    """Unix time in milliseconds."""

    @property
    def url(self) -> str:
        return f"{ROUTE}{self.name}"


class ImageFiles:
    """The folder may be shared by several processes. It is made when the first image is added."""

    def __init__(self, folder: Path, make_stem: Callable[[], str] = lambda: secrets.token_urlsafe(NAME_BYTES)) -> None:
        self._folder = folder
        self._make_stem = make_stem

    async def add(self, content: bytes, *, user: str, prompt: str, model: str, at_ms: int) -> ImageRecord:
        """Stores an image. Raises `NotAnImage`, `TooLarge` or `OSError`, and then leaves nothing behind."""
        name = f"{self._make_stem()}.{find_ending(content)}"
        record = ImageRecord(name, user, prompt[:MAX_PROMPT_CHARS], model, at_ms)
        await asyncio.to_thread(self._write, record, content)
        return record

    def path_of(self, record: ImageRecord) -> Path:
        return self._folder / record.name

    async def read(self, name: str) -> tuple[bytes, str] | None:
        """Returns an image and its media type; None for anything that is not the name of one."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        try:
            content = await asyncio.to_thread((self._folder / name).read_bytes)
        except OSError:
            return None
        return content, MEDIA_TYPES[found["ending"]]

    async def list(self, user: str) -> list[ImageRecord]:
        """Lists the images of a user, the oldest first."""
        return await asyncio.to_thread(lambda: [each for each in self._records() if each.user == user])

    async def delete_all(self, user: str) -> int:
        return await self._delete(lambda record: record.user == user)

    async def delete_before(self, at_ms: int) -> int:
        return await self._delete(lambda record: record.at_ms < at_ms)

    async def delete_mentioned(self, text: str, user: str) -> int:
        """Deletes the images of a user whose addresses are in a text, such as a conversation that is deleted."""
        names = {found[1] for found in _PATH.finditer(text)}
        return await self._delete(lambda record: record.user == user and record.name in names) if names else 0

    async def _delete(self, matches: Callable[[ImageRecord], bool]) -> int:
        return await asyncio.to_thread(self._delete_matching, matches)

    def _delete_matching(self, matches: Callable[[ImageRecord], bool]) -> int:
        found = [record for record in self._records() if matches(record)]
        for record in found:
            self.path_of(record).unlink(missing_ok=True)
            self._record_path(record).unlink(missing_ok=True)
        return len(found)

    def _records(self) -> Iterator[ImageRecord]:
        if not self._folder.is_dir():
            return
        records = []
        for path in self._folder.glob("*.json"):
            try:
                records.append(msgspec.json.decode(path.read_bytes(), type=ImageRecord))
            except FileNotFoundError:
                continue  # another process has just deleted it
            except (OSError, msgspec.MsgspecError) as error:
                log.warning("image_record_unreadable", file=path.name, error=type(error).__name__)
        yield from sorted(
            (record for record in records if _NAME.fullmatch(record.name)), key=lambda each: (each.at_ms, each.name)
        )

    def _write(self, record: ImageRecord, content: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            _write_atomically(self._record_path(record), msgspec.json.encode(record))
            _write_atomically(self.path_of(record), content)
        except OSError:
            with suppress(OSError):
                self._record_path(record).unlink(missing_ok=True)
            raise

    def _record_path(self, record: ImageRecord) -> Path:
        return self.path_of(record).with_suffix(".json")


def _write_atomically(path: Path, content: bytes) -> None:
    """Writes a file that only this user can read. Nobody sees a part of it, and it is on disk when this returns."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with os.fdopen(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        with suppress(OSError):
            partial.unlink()
