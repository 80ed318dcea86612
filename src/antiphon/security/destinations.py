"""Decides which addresses the server may fetch: public ones, so that no page or model can lead it into its own network.

Pure. `services/http/` resolves names, asks here about every address, and connects to the address that was checked.
"""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

from antiphon.errors import AntiphonError

SCHEMES: Final = {"http": 80, "https": 443}
"""What may be fetched, with the default ports."""
PORTS: Final = frozenset({80, 443, 8080, 8443})
"""The ports on which web pages are served. Others belong to mail, databases and the like, which may obey a request."""

_NAME: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_.])?", re.IGNORECASE | re.ASCII)
_NUMBER: Final = re.compile(r"\d+|0x[0-9a-f]*", re.IGNORECASE | re.ASCII)
_GLOBAL_IPV6: Final = ip_network("2000::/3")
"""The only IPv6 addresses that are in use on the internet. Python counts many others as global."""
_NAT64: Final = ip_network("64:ff9b::/96")
_NOT_PUBLIC: Final = tuple(
    ip_network(network)
    for network in (
        "192.88.99.0/24",  # relays for 6to4
        "2001::/23",  # special purposes, among them Teredo, which contains an IPv4 address
        "2002::/16",  # 6to4, which contains an IPv4 address
        "3fff::/20",  # documentation
    )
)


class ForbiddenAddress(AntiphonError):
    """An address must not be fetched. The text is a reason that can be told to anybody."""

    code = "forbidden_address"


def check_target(scheme: str, host: str, port: int | None, *, has_user: bool = False) -> int:
    """Checks what can be checked before the name is resolved, and returns the port. Raises `ForbiddenAddress`."""
    if scheme not in SCHEMES:
        raise ForbiddenAddress("Only http and https addresses can be fetched.")
    if has_user:
        raise ForbiddenAddress("An address with a user name or a password in it is not fetched.")
    if parse_address(host) is None and not _is_name(host):
        raise ForbiddenAddress("The address has no valid host name.")
    port = SCHEMES[scheme] if port is None else port
    if port not in PORTS:
        raise ForbiddenAddress(f"Port {port} is not one that web pages are fetched from.")
    return port


def check_addresses(addresses: list[str]) -> None:
    """Checks all addresses of a name. If one of them is not public, the name cannot be trusted at all."""
    for address in addresses:
        if not is_public(address):
            raise ForbiddenAddress("That address leads into a private network, which is not fetched from.")


def is_public(address: str) -> bool:
    """Returns whether an IP address belongs to the public internet. Anything else is not, even if it is not private."""
    found = parse_address(address)
    if isinstance(found, IPv6Address):
        if found in _NAT64:
            # How an IPv6-only network reaches IPv4 hosts, so the IPv4 address inside decides.
            return is_public(str(IPv4Address(int(found) & 0xFFFF_FFFF)))
        if found not in _GLOBAL_IPV6:
            return False
    return (
        found is not None
        and found.is_global
        and not found.is_multicast
        and not any(found in network for network in _NOT_PUBLIC if network.version == found.version)
    )


def parse_address(host: str) -> IPv4Address | IPv6Address | None:
    """Returns None unless the host is an IP address in its usual form: not 127.1, 0x7f.1 or 2130706433."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def _is_name(host: str) -> bool:
    """Whether it can be a name. If the last part is a number, resolvers read the whole as an address of some form."""
    last = host.rstrip(".").rpartition(".")[2]
    return _NAME.fullmatch(host) is not None and _NUMBER.fullmatch(last) is None
