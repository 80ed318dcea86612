import pytest

from tests.browser.chromium import find_chromium


def test_a_browser_that_is_missing_fails_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(AssertionError, match="Run `make system`"):
        find_chromium()
