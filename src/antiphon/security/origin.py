"""Checks the Origin and Host headers against exact lists, without patterns. Pure."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_WILDCARDS: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
"""Hosts that mean all addresses, and the loopback address for each."""
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}

# A browser writes an origin in exactly one way. Anything else (user@host, a path, a trailing dot, a non-ASCII letter)
# may be an attempt to make two parsers disagree, so it is refused instead of interpreted.
_LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?"
_HOST: Final = rf"(?P<name>{_LABEL}(?:\.{_LABEL})*)|\[(?P<v6>[0-9a-f:.]+)\]"
_PORT: Final = r"(?::(?P<port>[1-9][0-9]{0,4}))?"
_AUTHORITY: Final = re.compile(rf"(?:{_HOST}){_PORT}", re.ASCII)
_ORIGIN: Final = re.compile(rf"(?P<scheme>[a-z][a-z0-9+.-]*)://(?:{_HOST}){_PORT}", re.ASCII)
# A DNS name has at most 253 characters.
_MAX_CHARS: Final = 300


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a page, in a normalized form that can be compared."""

    scheme: str
    host: str
    """A lower-case name, or an address without brackets."""
    port: int | None
    """None for a scheme without a default port, such as an app's own."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        is_usual = self.port in (None, _DEFAULT_PORTS.get(self.scheme))
        return f"{self.scheme}://{host}" if is_usual else f"{self.scheme}://{host}:{self.port}"


def parse_origin(text: str) -> Origin | None:
    """Returns None for anything that is not an exact origin: "null", "*", a URL with a path, an unusual spelling."""
    found = _match(_ORIGIN, text)
    if found is None:
        return None
    scheme = found["scheme"]
    port = int(found["port"]) if found["port"] else _DEFAULT_PORTS.get(scheme)
    host = _host_of(found)
    return None if host is None or (port or 0) > 65_535 else Origin(scheme, host, port)


def explain_origin(text: str) -> str | None:
    """Explains what is wrong with an entry of `server.origins`; None if it is valid.

    An invalid entry would silently match no page.
    """
    if parse_origin(text) is not None:
        return None
    scheme, _, rest = text.strip().rpartition("://")
    meant = parse_origin(f"{scheme or 'https'}://{re.split('[/?#]', rest)[0]}")
    advice = f"Write {meant} instead." if meant is not None else "Write the whole address, such as https://example.org."
    return f'"{text}" in server.origins is not an origin, which has a scheme, a host and possibly a port. {advice}'


def allows_origin(origin: str | None, allowed: Collection[str]) -> bool:
    """Returns whether a request with this Origin header is allowed.

    Browsers send the header with every handshake and every cross-site POST, and pages cannot change it. A request
    without it comes from a program, which another page cannot control.
    """
    if origin is None:
        return True
    parsed = parse_origin(origin)
    return parsed is not None and any(parsed == parse_origin(each) for each in allowed)


def is_same_origin(origin: str | None, host_header: str | None) -> bool:
    """Returns whether a page comes from the host and port that its request was sent to. The scheme may be either, since
    a proxy may have decrypted the request."""
    page = parse_origin(origin) if origin is not None else None
    if page is None or host_header is None or page.scheme not in _DEFAULT_PORTS:
        return False
    return page == parse_origin(f"{page.scheme}://{host_header}")


def allows_host(host_header: str | None, allowed_hosts: Collection[str]) -> bool:
    """Returns whether the server answers to the name in a Host header; the port is ignored.

    A page whose own name was rebound to this machine's address passes every check of the browser, but the Host header
    still has that name.
    """
    host = parse_host(host_header) if host_header is not None else None
    return host is not None and any(host == parse_host(each) for each in allowed_hosts)


def parse_host(text: str) -> str | None:
    """Returns the host of `host`, `host:port` or `[v6]:port` in lower case, without brackets; None if invalid."""
    if ":" in text and not text.startswith("["):
        try:
            return str(IPv6Address(text))  # as written in settings, where there is no port
        except ValueError:
            pass
    found = _match(_AUTHORITY, text)
    return None if found is None or int(found["port"] or 0) > 65_535 else _host_of(found)


def own_origins(
    host: str, port: int, names: Iterable[str] = (), addresses: Iterable[str] = (), *, scheme: str = "http"
) -> frozenset[str]:
    """Returns the origins of the server's own page. `names` and `addresses` are those of the machine.

    The names are valid for any host except loopback; a wildcard host includes all addresses.
    """
    if is_loopback(host):
        hosts = [host, *LOOPBACK]
    elif is_wildcard(host):
        hosts = [*LOOPBACK, *names, *addresses]
    else:
        hosts = [host, *names]
    return frozenset(str(Origin(scheme, each, port)) for each in map(parse_host, hosts) if each is not None)


def own_authority(host: str, port: int) -> str:
    """Returns `host:port` for a URL with which this machine reaches its own server."""
    reached = reachable_host(host)
    return f"[{reached}]:{port}" if ":" in reached else f"{reached}:{port}"


def reachable_host(host: str) -> str:
    """Returns a host by which this machine reaches its own server: loopback for a wildcard."""
    return _WILDCARDS.get(host, host)


def is_loopback(host: str) -> bool:
    """Returns whether only this machine can reach a server on this host. Of names, only localhost counts."""
    bare = host.removeprefix("[").removesuffix("]").lower()
    if bare == "localhost":
        return True
    try:
        return ip_address(bare).is_loopback
    except ValueError:
        return False


def is_wildcard(host: str) -> bool:
    """Returns whether a server on this host listens on all addresses of the machine."""
    return host in _WILDCARDS


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return pattern.fullmatch(text.lower()) if len(text) <= _MAX_CHARS and text.isascii() else None


def _host_of(found: re.Match[str]) -> str | None:
    if found["v6"] is None:
        return found["name"]
    try:
        return str(IPv6Address(found["v6"]))
    except ValueError:
        return None
