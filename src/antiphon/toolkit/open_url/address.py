"""Parses web addresses strictly: anything but http or https to an ordinary host is refused.

Browsers accept many malformed addresses ("https:host", "java\\nscript:", backslashes for slashes), and attackers have
used each of these to get past a filter. So only a missing scheme is repaired here, and the address is rebuilt from its
parts.
"""

import re
import unicodedata
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final
from urllib.parse import quote, urlsplit

MAX_CHARS: Final = 2048
MAX_HOST_CHARS: Final = 253
MAX_LABEL_CHARS: Final = 63
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
KEPT: Final = "/%:@!$&'()*+,;=~"
"""Characters that are not escaped in a path. "%" is one, because an encoded address must not be encoded twice."""

# "example.com:8080" has a port and no scheme, so the colon of a scheme must not be followed by a port.
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*):(?![0-9]{1,5}(?:[/?#]|$))", re.IGNORECASE)
_AUTHORITY: Final = re.compile(r"(?:\[(?P<v6>[^\[\]]*)\]|(?P<name>[^\[\]:]+))(?::(?P<port>[0-9]{1,5}))?")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_SPOKEN: Final = re.compile(r"[\w.-]+(?: [\w.-]+)+")
_SPOKEN_SIGNS: Final = {"dot": ".", "slash": "/", "dash": "-", "hyphen": "-"}


class NotAnAddress(ValueError):
    """An address that is not opened. The message tells the user why."""


@dataclass(frozen=True, slots=True)
class Address:
    url: str
    host: str
    """ASCII; an IPv6 address without its brackets."""


def read_address(text: str) -> Address:
    """Raises `NotAnAddress`."""
    text = join_spoken(text)
    # Categories C and Z: control, invisible and direction-changing characters, lone surrogates, every kind of space.
    if "\\" in text or any(unicodedata.category(char)[0] in "CZ" for char in text):
        raise NotAnAddress("That address has a space, a backslash or an invisible character in it.")
    scheme = _SCHEME.match(text)
    if scheme and scheme[1].lower() not in DEFAULT_PORTS:
        raise NotAnAddress("I only open web pages, with http or https.")
    try:
        parts = urlsplit(text if scheme else f"https://{text}")
    except ValueError:
        raise NotAnAddress("That address doesn't have a valid host name.") from None
    host, port = read_authority(parts.netloc)
    if not scheme and "." not in host and ":" not in host:
        raise NotAnAddress("That doesn't look like a web address.")
    shown_host = f"[{host}]" if ":" in host else host
    shown_port = "" if port in (None, DEFAULT_PORTS[parts.scheme]) else f":{port}"
    query = f"?{quote(parts.query, safe=KEPT + '?')}" if parts.query else ""
    fragment = f"#{quote(parts.fragment, safe=KEPT + '?')}" if parts.fragment else ""
    url = f"{parts.scheme}://{shown_host}{shown_port}{quote(parts.path, safe=KEPT) or '/'}{query}{fragment}"
    if len(url) > MAX_CHARS:
        raise NotAnAddress("That address is too long.")
    return Address(url, host)


def join_spoken(text: str) -> str:
    """Returns a dictated address ("example dot com slash docs") as it is written, and anything else unchanged.

    Other words are joined too, since a recogniser writes a name as several: "open street map dot org".
    """
    words = text.split(" ")
    if not _SPOKEN.fullmatch(text) or _SPOKEN_SIGNS.keys().isdisjoint(word.lower() for word in words):
        return text
    return "".join(_SPOKEN_SIGNS.get(word.lower(), word) for word in words)


def read_authority(authority: str) -> tuple[str, int | None]:
    """Returns the host and port of the part between "//" and the path."""
    if "@" in authority:
        raise NotAnAddress("I don't open addresses with a user name or a password in them.")
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        raise NotAnAddress("That address doesn't have a valid host name.")
    port = int(found["port"]) if found["port"] else None
    if port is not None and not 0 < port < 65536:
        raise NotAnAddress("That address has an invalid port.")
    return (read_ipv6(found["v6"]) if found["v6"] is not None else read_name(found["name"])), port


def read_ipv6(text: str) -> str:
    try:
        address = IPv6Address(text)
    except AddressValueError:
        raise NotAnAddress("That address doesn't have a valid host name.") from None
    if address.scope_id is not None:
        raise NotAnAddress("I don't open addresses that are tied to a network card.")
    return str(address)


def read_name(text: str) -> str:
    """Returns a host name in ASCII, or an IPv4 address in its usual form."""
    # The ideographic full stop separates labels too, and is the only one that this normal form leaves unchanged.
    plain = unicodedata.normalize("NFKC", text).lower().replace("。", ".")
    labels = [_encode_label(label) for label in plain.removesuffix(".").split(".")]
    host = ".".join(labels)
    if len(host) > MAX_HOST_CHARS:
        raise NotAnAddress("That address doesn't have a valid host name.")
    # A browser reads "127.1", "2130706433" and "0x7f.1" as 127.0.0.1, which the name does not show.
    if _NUMBER.fullmatch(labels[-1]):
        try:
            IPv4Address(host)
        except AddressValueError:
            raise NotAnAddress("That address has a number in the place of its host name.") from None
    return host


def _encode_label(label: str) -> str:
    # The codec "idna" is IDNA 2003, which takes "straße" for "strasse"; browsers do not, so the label is encoded as is.
    encoded = label if label.isascii() else f"xn--{label.encode('punycode').decode('ascii')}"
    proper = all(char in "-_" or unicodedata.category(char)[0] in "LMN" for char in label)
    if not proper or not 0 < len(encoded) <= MAX_LABEL_CHARS or label[0] == "-" or label[-1] == "-":
        raise NotAnAddress("That address doesn't have a valid host name.")
    return encoded
