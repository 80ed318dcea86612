import pytest

from antiphon.security.origin import (
    allows_host,
    allows_origin,
    explain_origin,
    is_loopback,
    is_wildcard,
    own_authority,
    own_origins,
    parse_host,
    parse_origin,
)

ALLOWED = (
    "http://127.0.0.1:8000",
    "http://localhost:8000",
    "http://[::1]:8000",
    "https://talk.example.com",
    "app://antiphon",
)


@pytest.mark.parametrize(
    "origin",
    [
        *ALLOWED,
        "http://LOCALHOST:8000",
        "HTTP://localhost:8000",
        "https://talk.example.com:443",
        "https://Talk.Example.COM",
        "http://[0:0:0:0:0:0:0:1]:8000",
    ],
)
def test_an_origin_on_the_list_is_accepted(origin: str) -> None:
    assert allows_origin(origin, ALLOWED)


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "NULL",
        "",
        " ",
        "*",
        "https://evil.example",
        "http://127.0.0.1:8001",
        "http://127.0.0.1",
        "http://127.0.0.1:80",
        "http://127.0.0.1:08000",
        "http://127.0.0.1:8000.evil.example",
        "http://127.0.0.1:8000@evil.example",
        "http://127.0.0.1:8000:8000",
        "http://127.0.0.1:",
        "http://127.0.0.1:80000",
        "http://127.0.0.1:-8000",
        "http://127.0.0.1:8000/",
        "http://127.0.0.1:8000/ws",
        "http://127.0.0.1:8000?",
        "http://127.0.0.1:8000#",
        "http://127.0.0.1:8000\n",
        " http://127.0.0.1:8000",
        "http://127.0.0.1:8000 ",
        "http://127.0.0.1:8000, http://127.0.0.1:8000",
        "http://127.0.0.1:8000\x00",
        "http://127.0.0.1:８０００",
        "http://127.1:8000",
        "http://2130706433:8000",
        "http://0x7f.0.0.1:8000",
        "http://127.0.0.1.:8000",
        "http://localhost.:8000",
        "http://.localhost:8000",
        "http://localhost.evil.example:8000",
        "http://evil.localhost:8000",
        "http://evil-localhost:8000",
        "http://user@localhost:8000",
        "http://user:pass@localhost:8000",
        "http://@localhost:8000",
        "http://localhost\\@evil.example:8000",
        "http://localhost%00.evil.example:8000",
        "http://ⓛocalhost:8000",
        "http:localhost:8000",
        "http:/localhost:8000",
        "http:///localhost:8000",
        "//localhost:8000",
        "localhost:8000",
        "https://localhost:8000",
        "ws://localhost:8000",
        "file://",
        "http://",
        "http://[::1]",
        "http://::1:8000",
        "http://[::1%25lo]:8000",
        "http://[::ffff:127.0.0.1]:8000",
        "http://[::1]evil:8000",
        "http://[]:8000",
        "http://[:::1]:8000",
        "http://talk.example.com",
        "https://talk.example.com.evil.example",
        "https://eviltalk.example.com",
        "https://talk.example.com:8443",
        "https://sub.talk.example.com",
        "https://example.com",
        "app://antiphon:80",
        "app://other",
        "https://" + "a." * 5_000 + "example",
    ],
)
def test_an_origin_that_is_not_on_the_list_is_refused(origin: str) -> None:
    assert not allows_origin(origin, ALLOWED)


@pytest.mark.parametrize("entry", ["*", "null", "http://*", "http://localhost:*", "localhost:8000", ""])
def test_an_invalid_entry_allows_nothing(entry: str) -> None:
    origins = (entry, "null", "http://localhost:8000", "http://evil.example")
    assert not any(allows_origin(each, [entry]) for each in origins)


def test_a_program_has_no_origin_and_needs_none() -> None:
    assert allows_origin(None, [])


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:8000",
        "LocalHost:9000",
        "127.0.0.1:8000",
        "[::1]",
        "[::1]:8000",
        "[0:0::1]:8000",
        "talk.example.com",
    ],
)
def test_a_host_name_of_the_server_is_accepted(host: str) -> None:
    assert allows_host(host, ["localhost", "127.0.0.1", "::1", "talk.example.com"])


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "evil.example:8000",
        "localhost.evil.example",
        "127.0.0.1.evil.example:8000",
        "localhost.",
        "localhost:",
        "localhost:0",
        "localhost:99999",
        "localhost:8000:8000",
        "localhost, localhost",
        "user@localhost",
        "evil.example@localhost:8000",
        "localhost/",
        "localhost#",
        "http://localhost",
        "127.0.0.2",
        "127.1",
        "0.0.0.0",
        "[::]",
        "[::2]:8000",
        "[::1",
        "::1]",
        "[::1]x",
        "[::ffff:127.0.0.1]:8000",
        "[fe80::1%25eth0]",
        "localhost\x00",
        "localhost\n",
        "locаlhost",  # its third vowel is Cyrillic
        "*",
    ],
)
def test_another_host_name_is_refused(host: str | None) -> None:
    assert not allows_host(host, ["localhost", "127.0.0.1", "::1"])


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]"])
def test_on_loopback_the_server_has_three_origins(host: str) -> None:
    assert own_origins(host, 8000) == {"http://127.0.0.1:8000", "http://localhost:8000", "http://[::1]:8000"}


def test_another_address_of_loopback_is_added_to_the_three() -> None:
    assert "http://127.0.0.9:8000" in own_origins("127.0.0.9", 8000)


def test_the_default_port_is_omitted() -> None:
    assert own_origins("talk.example.com", 80) == {"http://talk.example.com"}


def test_a_host_that_is_not_loopback_is_reached_by_the_names_of_the_machine_too() -> None:
    origins = own_origins("192.168.1.5", 8000, ["kitchen", "kitchen.local"], ["192.168.1.5", "10.0.0.1"])
    assert origins == {"http://192.168.1.5:8000", "http://kitchen:8000", "http://kitchen.local:8000"}


def test_the_names_of_the_machine_do_not_lead_to_loopback() -> None:
    assert own_origins("127.0.0.1", 8000, ["kitchen"], ["10.0.0.1"]) == own_origins("127.0.0.1", 8000)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_a_wildcard_stands_for_the_addresses_of_the_machine(host: str) -> None:
    origins = own_origins(host, 8000, ["kitchen", "not a name"], ["192.168.1.5", "fd00::5"])
    others = {"http://kitchen:8000", "http://192.168.1.5:8000", "http://[fd00::5]:8000"}
    assert origins == own_origins("localhost", 8000) | others


@pytest.mark.parametrize(
    ("host", "authority"),
    [
        ("127.0.0.1", "127.0.0.1:8000"),
        ("kitchen", "kitchen:8000"),
        ("fd00::5", "[fd00::5]:8000"),
        ("0.0.0.0", "127.0.0.1:8000"),
        ("", "127.0.0.1:8000"),
        ("::", "[::1]:8000"),
    ],
)
def test_a_server_is_reached_from_its_own_machine_at(host: str, authority: str) -> None:
    assert own_authority(host, 8000) == authority


@pytest.mark.parametrize("host", ["127.0.0.1", "192.168.1.5", "::1", "localhost", "0.0.0.1"])
def test_a_single_address_is_not_a_wildcard(host: str) -> None:
    assert not is_wildcard(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.255.0.3", "localhost", "LOCALHOST", "::1", "[::1]"])
def test_loopback_is_reached_from_this_machine_only(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "", "192.168.1.5", "10.0.0.1", "example.com", "localhost.example.com"]
)
def test_other_hosts_are_not_loopback(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("text", ["https://talk.example.com", "http://[::1]:8000", "http://localhost:8000", "app://a"])
def test_an_origin_is_written_as_browsers_write_it(text: str) -> None:
    assert str(parse_origin(text)) == text


def test_an_ipv6_address_needs_no_brackets_in_the_settings() -> None:
    assert parse_host("FD00::5") == "fd00::5"


@pytest.mark.parametrize(
    ("entry", "advice"),
    [
        ("https://a.example/x", "Write https://a.example instead."),
        ("http://[::1]:8000/", "Write http://[::1]:8000 instead."),
        ("kitchen:8000/talk", "Write https://kitchen:8000 instead."),
        ("https://user@a.example", "Write the whole address, such as https://example.org."),
        ("", "Write the whole address, such as https://example.org."),
    ],
)
def test_an_invalid_entry_is_explained_with_the_right_form(entry: str, advice: str) -> None:
    problem = explain_origin(entry)
    assert problem is not None
    assert problem.endswith(advice)


def test_a_valid_origin_needs_no_explanation() -> None:
    assert explain_origin("https://a.example:8443") is None
