import pytest

from antiphon.security.tokens import bearer, hash_token, is_token, make_handle, make_token

TOKEN = "apn_" + "A" * 43


def test_a_token_holds_256_random_bits() -> None:
    assert make_token(lambda count: bytes(range(count))) == "apn_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"


def test_a_handle_can_be_distinguished_from_a_token() -> None:
    handle = make_handle(lambda count: b"\xff" * count)
    assert handle.startswith("apr_")
    assert not is_token(handle)


def test_no_two_tokens_are_alike() -> None:
    assert len({make_token() for _ in range(1_000)}) == 1_000


def test_a_new_token_has_the_shape_of_one() -> None:
    assert is_token(make_token())


@pytest.mark.parametrize(
    "text", ["", "apn_", TOKEN[:-1], TOKEN + "A", TOKEN + "\n", "apr_" + "A" * 43, TOKEN[:-1] + "=", "APN_" + "A" * 43]
)
def test_text_of_another_shape_is_not_a_token(text: str) -> None:
    assert not is_token(text)


def test_the_hash_is_the_same_on_every_machine() -> None:
    assert hash_token("apn_x") == "07cd79adfd9e7b2e446484c00ef1c6e1294b2ec8a710deeca077d542189ae700"


def test_the_hash_does_not_contain_the_secret() -> None:
    assert TOKEN not in hash_token(TOKEN)


def test_a_lone_surrogate_can_be_hashed() -> None:
    assert hash_token("\ud800") != hash_token("?")


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer {TOKEN}", f"BEARER   {TOKEN}", f"Bearer {TOKEN} "])
def test_a_bearer_token_is_found(header: str) -> None:
    assert bearer(header) == TOKEN


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        TOKEN,
        f"Bearer{TOKEN}",
        f"Basic {TOKEN}",
        f"Bearer {TOKEN} {TOKEN}",
        f"Bearer {TOKEN}, Bearer {TOKEN}",
        f" Bearer {TOKEN}",
        f"Bearer {TOKEN}\n",
        'Bearer "quoted"',
        "Bearer tökén",
    ],
)
def test_other_headers_hold_no_token(header: str | None) -> None:
    assert bearer(header) is None
