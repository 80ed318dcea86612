"""The images that there are: how they are named, and whose they are.

Each image has a random name of 256 bits, so its address cannot be guessed. The store has the images themselves.
"""

import asyncio
import re
import secrets
from pathlib import Path
from typing import Any, Final

import msgspec

from antiphon.services.images.formats import MEDIA_TYPES, NotAnImage, TooLarge, find_ending
from antiphon.storage.base import StorageError
from antiphon.storage.images import ImageRecord, ImageStore
from antiphon.telemetry.log import get_logger

ROUTE: Final = "/images/"
"""The beginning of the path at which the server has the images."""
NAME_BYTES: Final = 32
MAX_PROMPT_CHARS: Final = 4_000

_NAME: Final = re.compile(rf"[A-Za-z0-9_-]{{43}}\.(?:{'|'.join(MEDIA_TYPES)})")
_PATH: Final = re.compile(rf"{ROUTE}({_NAME.pattern})")

log = get_logger(__name__)


def address_of(record: ImageRecord) -> str:
    """Returns the path at which the server shows an image."""
    return f"{ROUTE}{record.name}"


class ImageArchive:
    def __init__(self, store: ImageStore) -> None:
        self.store = store

    async def add(self, content: bytes, *, user: str, prompt: str, model: str, at_ms: int) -> ImageRecord:
        """Stores an image. Raises `NotAnImage`, `TooLarge` or `StorageError`."""
        ending = find_ending(content)
        record = ImageRecord(
            name=f"{secrets.token_urlsafe(NAME_BYTES)}.{ending}",
            user=user,
            prompt=prompt[:MAX_PROMPT_CHARS],
            model=model,
            at_ms=at_ms,
            media_type=MEDIA_TYPES[ending],
        )
        await self.store.add(record, content)
        return record

    async def read(self, name: str) -> tuple[ImageRecord, bytes] | None:
        """Returns None for anything that is not the name of an image, without asking the store."""
        return await self.store.read(name) if _NAME.fullmatch(name) else None

    async def delete_mentioned(self, text: str, user: str) -> int:
        """Deletes the images of a user whose addresses are in a text, such as a conversation that is deleted."""
        names = {found[1] for found in _PATH.finditer(text)}
        return await self.store.delete(user, sorted(names)) if names else 0

    async def import_files(self, folder: Path) -> None:
        """Moves images into the store that an earlier version has left as files, each beside its record as JSON."""
        for path in await asyncio.to_thread(lambda: sorted(folder.glob("*.json"))):
            try:
                record, content = await asyncio.to_thread(_read_files, path)
                if await self.store.read(record.name) is None:
                    await self.store.add(record, content)
                await asyncio.to_thread(path.with_name(record.name).unlink)
                await asyncio.to_thread(path.unlink)
            except (OSError, ValueError, NotAnImage, TooLarge, StorageError) as error:
                log.warning("image_not_imported", file=path.name, error=type(error).__name__)


def _read_files(path: Path) -> tuple[ImageRecord, bytes]:
    """Reads an image and its record. Raises `OSError`, `ValueError`, `NotAnImage` or `TooLarge`."""
    fields = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    name = str(fields.get("name"))
    if not _NAME.fullmatch(name):
        raise ValueError("this is not the name of an image")
    content = path.with_name(name).read_bytes()
    return msgspec.convert({**fields, "media_type": MEDIA_TYPES[find_ending(content)]}, ImageRecord), content
