import pytest

from antiphon.security.destinations import ForbiddenAddress, check_addresses, check_target, is_public


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.255.255.254",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "169.254.0.1",
        "100.64.0.1",
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "198.18.0.1",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "64:ff9b::7f00:1",
        "64:ff9b::a00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:808:808::1",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "not an address",
        "",
    ],
)
def test_an_address_outside_the_public_internet_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "93.184.215.14", "2606:4700::1111", "2a00:1450::1", "64:ff9b::808:808"])
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(address)


def test_one_private_address_among_public_ones_is_enough_to_refuse_a_name() -> None:
    with pytest.raises(ForbiddenAddress, match="private network"):
        check_addresses(["8.8.8.8", "10.0.0.1"])


@pytest.mark.parametrize(
    ("scheme", "host", "port"),
    [
        ("ftp", "example.org", None),
        ("file", "", None),
        ("gopher", "example.org", 70),
        ("", "example.org", None),
        ("http", "", None),
        ("http", "2130706433", None),
        ("http", "0x7f000001", None),
        ("http", "0177.0.0.1", None),
        ("http", "127.1", None),
        ("http", "0x7f.1", None),
        ("http", "127.0.0.1.", None),
        ("http", "exa mple.org", None),
        ("http", "example.org", 22),
        ("http", "example.org", 6379),
        ("https", "example.org", 0),
    ],
)
def test_a_target_that_is_not_a_web_page_is_refused(scheme: str, host: str, port: int | None) -> None:
    with pytest.raises(ForbiddenAddress):
        check_target(scheme, host, port)


def test_a_user_name_is_refused() -> None:
    with pytest.raises(ForbiddenAddress, match="user name"):
        check_target("https", "example.org", None, has_user=True)


@pytest.mark.parametrize(("scheme", "port", "used"), [("http", None, 80), ("https", None, 443), ("https", 8443, 8443)])
def test_a_web_page_is_allowed_on_the_ports_of_web_pages(scheme: str, port: int | None, used: int) -> None:
    assert check_target(scheme, "xn--bcher-kva.example", port) == used
