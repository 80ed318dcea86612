import pytest

from antiphon.security.addresses import AddressError, is_own, leads_here, parse_place, read_key, split

SECRETS = [
    "https://me:s3cret@box/v1",
    "https://me:s3cret@box:port/v1",
    "https://me:s3 cret@box/v1",
    "https://me:s3cret@[box/v1",
    "https://me:s3cret\n@[box/v1",
    "ftp://me:s3cret@box/v1",
    "https://box/v1?key=s3cret",
    "https://box:port/v1?key=s3cret",
]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("gpt-5", (None, "gpt-5")),
        ("org/m:8b", (None, "org/m:8b")),
        ("http://box:8080/v1#qwen3", ("http://box:8080/v1", "qwen3")),
        ("http://box:8080/v1/#qwen3", ("http://box:8080/v1", "qwen3")),
        ("https://[::1]/v1#a#b", ("https://[::1]/v1", "a#b")),
        ("http://box/v1", ("http://box/v1", "")),
        ("", (None, "")),
    ],
)
def test_a_model_is_named_alone_or_behind_its_address(text: str, place: tuple[str | None, str]) -> None:
    assert parse_place(text) == place


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gpt 5", "spaces"),
        ("a\nb", "spaces"),
        ("ftp://box/v1#m", "must start with http"),
        ("http://#m", "must start with http"),
        ("http://a b/v1#m", "must start with http"),
        ("http://box:port/v1#m", "not the address of a server"),
        ("http://box:99999/v1#m", "not the address of a server"),
        ("http://[::1/v1#m", "not the address of a server"),
    ],
)
def test_an_address_without_a_model_is_refused(text: str, says: str) -> None:
    with pytest.raises(AddressError, match=says):
        parse_place(text)


@pytest.mark.parametrize("address", SECRETS)
def test_a_secret_in_an_address_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(AddressError) as refused:
        parse_place(f"{address}#m")
    assert "cret" not in str(refused.value)


@pytest.mark.parametrize("address", ["tcp://box:port", "tcp://box:99999", "tcp://[::1:10300"])
def test_an_address_that_has_no_parts_is_refused(address: str) -> None:
    with pytest.raises(AddressError, match="not the address of a server"):
        split(address)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1:8080", "[::1]:8080", "LOCALHOST:8080", "llm.localhost"])
def test_a_server_on_this_machine_is_recognized_by_its_address(host: str) -> None:
    assert leads_here(f"http://{host}/v1")


@pytest.mark.parametrize("url", ["http://192.168.0.4/v1", "https://localhost.example/v1", "http://0.0.0.0/", "box", ""])
def test_any_other_server_is_remote(url: str) -> None:
    assert not leads_here(url)


@pytest.mark.parametrize(("value", "key"), [(" k1\n", "k1"), (" ", None), ("", None)])
def test_a_key_is_stripped_of_whitespace(value: str, key: str | None) -> None:
    assert read_key({"A_KEY": value}, "A_KEY") == key


def test_a_key_may_be_missing() -> None:
    assert read_key({}, "A_KEY") is None


@pytest.mark.parametrize("value", ["s3cret\x00", "s3cret\nX: y", "s3cretключ"])
def test_a_key_invalid_in_a_header_is_refused_and_not_repeated(value: str) -> None:
    with pytest.raises(AddressError, match="A_KEY contains characters") as refused:
        read_key({"A_KEY": value}, "A_KEY")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "own"),
    [
        ("http://127.0.0.1:8080/v1", True),
        ("http://localhost/v1", True),
        ("http://192.168.1.5:8080/v1", True),
        ("http://[fd00::1]/v1", True),
        ("http://ollama:11434", True),
        ("http://big-box.local/v1", True),
        ("http://8.8.8.8/v1", False),
        ("https://api.openai.com/v1", False),
        ("https://local.example.com/v1", False),
    ],
)
def test_servers_of_the_own_network_are_known_by_their_address(url: str, own: bool) -> None:
    assert is_own(url) is own
