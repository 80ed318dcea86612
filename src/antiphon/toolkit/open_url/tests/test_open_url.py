import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from antiphon.authoring.testing import make_context
from antiphon.toolkit.open_url import handler
from antiphon.toolkit.open_url.address import MAX_CHARS, NotAnAddress, read_address
from antiphon.toolkit.open_url.handler import execute
from antiphon.tools.arguments import Arguments, compile_schema
from antiphon.tools.errors import ErrorType
from antiphon.tools.result import Flyout, FlyoutType

SCHEMA = json.loads((Path(handler.__file__).parent / "schema.json").read_text())

OTHER_SCHEMES = [
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    "javascript://example.com/%0aalert(1)",
    "javascript:1",
    "javascript:1/x",
    "data:text/html,<script>alert(1)</script>",
    "data:,x",
    "vbscript:msgbox",
    "file:///etc/passwd",
    "file://host/share",
    "ftp://example.com/",
    "ws://example.com/",
    "wss://example.com/",
    "blob:https://example.com/1",
    "view-source:https://example.com",
    "about:blank",
    "mailto:someone@example.com",
    "tel:911",
    "chrome://settings",
    "intent://example.com#Intent;end",
    "httpx://example.com",
    "http+unix://example.com",
    "filesystem:https://example.com/x",
]

HIDDEN_CHARACTERS = [
    "java\nscript:alert(1)",
    "java\tscript:alert(1)",
    "\x01javascript:alert(1)",
    "\x00https://example.com",
    " https://example.com",
    "https://example.com ",
    "https://example.com\n",
    " //evil.com",
    "https://exa mple.com",
    "https://example.com/a b",
    "https://example.com/\r\nSet-Cookie: x",
    "https://example.com\\@evil.com",
    "https:\\\\evil.com",
    "\\\\evil.com\\share",
    "https://exam\u200bple.com",
    "https://exam\u00adple.com",
    "https://example.com/\u202egpj.exe",
    "https://\u2066example.com",
    "https://example.com/\u00a0",
    "https://example.com/\u2028x",
    "https://\ufeffexample.com",
    "https://example.com/\ud800",
    "https://\ue000.com",
    "hello world",
    "dot com\n",
]

NO_HOST = [
    "https:evil.com",
    "https:/evil.com",
    "https:",
    "https://",
    "http:///x",
    "https://?q",
    "https://#f",
    "https://:443/",
    "//evil.com",
    "/etc/passwd",
    "?q=1",
    "#top",
    ".",
    "..",
    "dot",
    "localhost",
    "hello",
    "https://.",
    "https://..",
    "https://.com",
    "https://example..com",
    "https://example.com../",
    "https://-example.com",
    "https://example-.com",
    "https://exa%6dple.com",
    "https://exa$mple.com",
    "https://<b>.com",
    "https://exam|ple.com",
    "https://example.com;evil.com",
    f"https://{'a' * 64}.com",
    f"https://{'a.' * 130}com",
    "https://🦊.example.com",
]

CREDENTIALS = [
    "https://user@example.com",
    "https://user:secret@example.com",
    "https://@example.com",
    "https://:@example.com",
    "https://example.com@evil.com",
    "https://example.com%2f@evil.com/",
    "https://a@b@evil.com",
    "user@example.com",
    "https://example.com:80@evil.com",
]

UNICODE_TRICKS = [
    "https://example.com／evil.com",
    "https://example.com＠evil.com",
    "https://example.com：80＠evil.com",
    "https://evil.c℀.example.com",
    "https://example.com＃evil.com",
    "https://example.com？evil.com",
    "https://example.com⁄evil.com",
    "https://example.com∕evil.com",
    "ｊavascript:alert(1)",
    "javascript：alert(1)",
    "https：//evil.com",
]

PORTS_AND_NUMBERS = [
    "https://example.com:",
    "https://example.com:0/",
    "https://example.com:65536/",
    "https://example.com:999999/",
    "https://example.com:80:80/",
    "https://example.com:x/",
    "https://example.com:-1/",
    "https://example.com:８０/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0177.0.0.1/",
    "http://1.2.3.4.5/",
    "http://256.1.1.1/",
    "http://example.0x/",
    "http://①②⑦.1/",
    "http://[::1/",
    "http://::1/",
    "http://[::1]evil.com/",
    "http://evil.com[::1]/",
    "http://[::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://[v1.x]/",
    "http://[127.0.0.1]/",
    "http://[]/",
    "http://[::1]:/",
]


@pytest.mark.parametrize(
    "url", [*OTHER_SCHEMES, *HIDDEN_CHARACTERS, *NO_HOST, *CREDENTIALS, *UNICODE_TRICKS, *PORTS_AND_NUMBERS, "a" * 2048]
)
async def test_text_that_is_not_clearly_a_web_address_is_refused(url: str) -> None:
    result = await execute({"url": url}, make_context())
    assert result.error is not None
    assert result.error.type is ErrorType.VALIDATION
    assert result.flyout is None


@pytest.mark.parametrize("url", OTHER_SCHEMES)
def test_another_scheme_is_distinguished_from_a_bad_host(url: str) -> None:
    with pytest.raises(NotAnAddress, match=r"http or https|doesn't look like"):
        read_address(url)


@pytest.mark.parametrize("url", CREDENTIALS)
def test_credentials_are_reported_as_such(url: str) -> None:
    with pytest.raises(NotAnAddress, match="user name or a password"):
        read_address(url)


@pytest.mark.parametrize(
    ("given_url", "opened"),
    [
        ("https://example.com", "https://example.com/"),
        ("http://example.com/", "http://example.com/"),
        ("HTTPS://Example.COM/Path", "https://example.com/Path"),
        ("example.com", "https://example.com/"),
        ("Example.com/docs?x=1#top", "https://example.com/docs?x=1#top"),
        ("example.com:8443/x", "https://example.com:8443/x"),
        ("example.com.", "https://example.com/"),
        ("https://example.com:443/", "https://example.com/"),
        ("http://example.com:80", "http://example.com/"),
        ("http://example.com:443/", "http://example.com:443/"),
        ("http://localhost:8000/", "http://localhost:8000/"),
        ("http://router/", "http://router/"),
        ("https://my_host.example.com/", "https://my_host.example.com/"),
        ("http://192.168.1.10:8080/x", "http://192.168.1.10:8080/x"),
        ("http://[::1]:8000/", "http://[::1]:8000/"),
        ("https://[2001:DB8:0:0::1]/", "https://[2001:db8::1]/"),
        ("https://example.com/a%20b?q=c%2Fd", "https://example.com/a%20b?q=c%2Fd"),
        ("https://example.com/ü?q=ö#ä", "https://example.com/%C3%BC?q=%C3%B6#%C3%A4"),
        ('https://example.com/"><script>', "https://example.com/%22%3E%3Cscript%3E"),
        ("https://example.com/search?q=a+b&c=[d]", "https://example.com/search?q=a+b&c=%5Bd%5D"),
        ("https://example.com/x?u=https://a.org/@b", "https://example.com/x?u=https://a.org/@b"),
        ("https://example.com/javascript:alert(1)", "https://example.com/javascript:alert(1)"),
        ("https://example.com//x", "https://example.com//x"),
    ],
)
def test_an_address_is_opened_in_its_normal_form(given_url: str, opened: str) -> None:
    assert read_address(given_url).url == opened


@pytest.mark.parametrize(
    ("given_url", "host"),
    [
        ("https://münchen.de/", "xn--mnchen-3ya.de"),
        ("https://MÜNCHEN.de/", "xn--mnchen-3ya.de"),
        ("https://mu\u0308nchen.de/", "xn--mnchen-3ya.de"),
        ("https://straße.de/", "xn--strae-oqa.de"),
        ("https://xn--mnchen-3ya.de/", "xn--mnchen-3ya.de"),
        ("https://日本語。jp/", "xn--wgv71a119e.jp"),
        ("https://аррӏе.com/", "xn--80ak6aa92e.com"),
        ("https://ｅｘａｍｐｌｅ．com/", "example.com"),
        ("https://ⓔxample.com/", "example.com"),
    ],
)
def test_a_lookalike_host_is_shown_by_its_real_name(given_url: str, host: str) -> None:
    assert read_address(given_url).host == host


@pytest.mark.parametrize(
    ("spoken", "opened"),
    [
        ("example dot com", "https://example.com/"),
        ("Example Dot Com", "https://example.com/"),
        ("docs dot python dot org slash three", "https://docs.python.org/three"),
        ("open street map dot org", "https://openstreetmap.org/"),
        ("my dash site dot org", "https://my-site.org/"),
        ("example.com slash docs", "https://example.com/docs"),
        ("münchen dot de", "https://xn--mnchen-3ya.de/"),
    ],
)
def test_a_spoken_address_is_understood(spoken: str, opened: str) -> None:
    assert read_address(spoken).url == opened


@settings(deadline=None)
@given(st.text(max_size=80) | st.from_regex(r"(https?:)?/{0,3}[^/]{0,20}(:[0-9]{0,6})?(/.{0,20})?", fullmatch=True))
@example("https://example.com/ǰ")
@example("https://ſ.com")
@example("https://K.com")
def test_whatever_is_opened_is_http_in_plain_ascii_and_stays_the_same_when_read_again(text: str) -> None:
    try:
        address = read_address(text)
    except NotAnAddress:
        return
    parts = urlsplit(address.url)
    assert parts.scheme in {"http", "https"}
    assert parts.hostname == address.host
    assert (parts.username, parts.password) == (None, None)
    assert address.url.isascii()
    assert address.url.isprintable()
    assert not set(address.url) & set(' \\"<>`{}|^')
    assert read_address(address.url) == address


async def test_the_page_gets_the_normal_form_under_its_host_name() -> None:
    result = await execute({"url": "HTTPS://Example.com/x"}, make_context())
    assert result.flyout == Flyout(FlyoutType.BROWSER, "https://example.com/x", title="example.com")


async def test_a_description_does_not_hide_whose_page_it_is() -> None:
    result = await execute({"url": "https://evil.example/", "description": "Your\nbank "}, make_context())
    assert result.flyout is not None
    assert result.flyout.title == "evil.example: Your bank"


async def test_a_blank_description_counts_as_missing() -> None:
    result = await execute({"url": "https://example.com/", "description": " "}, make_context())
    assert result.flyout is not None
    assert result.flyout.title == "example.com"


async def test_the_data_says_what_was_opened() -> None:
    result = await execute({"url": "example.com"}, make_context())
    assert result.data == {"opened": True, "url": "https://example.com/", "host": "example.com"}
    assert compile_schema(SCHEMA["outputs"]).is_valid(result.data)


@pytest.mark.parametrize(
    ("url", "host"),
    [("https://docs.python.org/3/library/", "docs.python.org"), ("http://[2001:db8::1]/", "2001:db8::1")],
)
async def test_the_host_is_reported_as_written(url: str, host: str) -> None:
    result = await execute({"url": url}, make_context())
    assert result.spoken == f"I've opened {host} on the page."


async def test_an_address_that_grows_too_long_when_encoded_is_refused() -> None:
    result = await execute({"url": f"https://example.com/{'ü' * 1000}"}, make_context())
    assert result.error is not None
    assert result.error.message == "That address is too long."


def test_the_longest_address_is_opened() -> None:
    url = "https://example.com/".ljust(MAX_CHARS, "a")
    assert read_address(url).url == url


@pytest.mark.parametrize(
    ("args", "accepted"),
    [
        ({"url": "https://example.com"}, True),
        ({"url": "x" * 2048, "description": "x" * 200}, True),
        ({"url": ""}, False),
        ({"url": "x" * 2049}, False),
        ({"url": "https://example.com", "description": "x" * 201}, False),
        ({"url": "https://example.com", "target": "_top"}, False),
        ({}, False),
    ],
)
def test_the_bounds_of_the_arguments_are_enforced(args: dict[str, Any], accepted: bool) -> None:
    assert Arguments(SCHEMA["parameters"]).accepts(args) is accepted
