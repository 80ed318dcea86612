"""Which files are images that a browser may be given. Pure."""

from collections.abc import Mapping
from typing import Final

MAX_IMAGE_BYTES: Final = 20 * 1024 * 1024
"""The largest image that is stored. A PNG of 4 megapixels rarely has half of it."""

MEDIA_TYPES: Final[Mapping[str, str]] = {"png": "image/png", "jpg": "image/jpeg", "webp": "image/webp"}
"""By the ending of the file's name. SVG is not among them: it is a document that can hold scripts."""


class NotAnImage(Exception):
    """The answer of a service holds no image of a known format."""


class TooLarge(Exception):
    """The answer of a service, or its image, is larger than the limit."""


def find_ending(content: bytes) -> str:
    """Returns the ending for a file with this content, by its first bytes: what a server claims about it may be wrong.

    Raises `NotAnImage` or `TooLarge`.
    """
    if len(content) > MAX_IMAGE_BYTES:
        raise TooLarge
    if content.startswith(b"\x89PNG\r\n\x1a\n") and content[12:16] == b"IHDR":
        return "png"
    if content.startswith(b"\xff\xd8\xff"):
        return "jpg"
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "webp"
    raise NotAnImage
