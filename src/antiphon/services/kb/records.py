"""What a record must be like, how it gets its id, and how its times are written."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import asdict

from antiphon.errors import AntiphonError
from antiphon.services.kb.terms import fold, words
from antiphon.storage.knowledge import SHARED, Namespace, Record, RecordType
from antiphon.tools.capabilities.kb import FullRecord

MAX_TITLE_CHARS: Final = 200
MAX_BODY_CHARS: Final = 2_000_000
MAX_TAGS: Final = 20
MAX_TAG_CHARS: Final = 50
MAX_NAME_CHARS: Final = 80
LINK: Final = re.compile(r"https?://[^\s<>\"'()\[\]]+", re.IGNORECASE)
_ID: Final = re.compile(r"[a-z]+:[\w][\w.-]{0,99}")


class RecordError(AntiphonError):
    """A record cannot be stored. The message says what is wrong with it."""

    code = "record"


def check_record(record: Record) -> None:
    """Raises `RecordError` for a record that must not be stored."""
    named = f"the record {record.id!r}"
    if _ID.fullmatch(record.id) is None or record.id.partition(":")[0] != record.type:
        raise RecordError(f"{record.id!r} is not an id. It must be the type and a name: {record.type}:some_name.")
    if not record.title.strip() or len(record.title) > MAX_TITLE_CHARS:
        raise RecordError(f"{named} must have a title of 1 to {MAX_TITLE_CHARS} characters.")
    if not record.body.strip() and not record.url:
        raise RecordError(f"{named} has no text and no link, so nobody could find anything in it.")
    if len(record.body) > MAX_BODY_CHARS:
        raise RecordError(f"{named} is longer than {MAX_BODY_CHARS:,} characters. Split it into several files.")
    if len(record.tags) > MAX_TAGS or any(not tag or len(tag) > MAX_TAG_CHARS for tag in record.tags):
        raise RecordError(f"{named} may have {MAX_TAGS} tags of 1 to {MAX_TAG_CHARS} characters.")
    if record.url is not None and LINK.fullmatch(record.url) is None:
        raise RecordError(f"{named} has the link {record.url!r}, which does not begin with http:// or https://.")
    if (record.namespace is Namespace.PERSONAL) is (record.owner == SHARED):
        raise RecordError(f"{named} must have an owner if it is personal, and only then.")


def make_id(type: RecordType, title: str, taken: Callable[[str], bool] = lambda id: False) -> str:
    """Makes an id from a title, with a number if it is taken."""
    name = "_".join(fold(word.text).replace("'", "").replace("’", "") for word in words(title))[:MAX_NAME_CHARS]
    base = f"{type}:{name.strip('_') or 'record'}"
    number, id = 1, base
    while taken(id):
        number += 1
        id = f"{base}_{number}"
    return id


def clean_tag(tag: str) -> str:
    return " ".join(tag.lower().split())


def to_ms(moment: datetime) -> int:
    """Returns Unix time. A time without a zone is in UTC."""
    return round((moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def to_iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def full_record(record: Record) -> FullRecord:
    fields = asdict(record)
    return FullRecord(
        last_updated=to_iso(fields.pop("last_updated_ms")),
        **{name: value for name, value in fields.items() if name != "owner"},
    )
