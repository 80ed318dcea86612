import pytest

from antiphon.speech.base import SpeechError
from antiphon.speech.extras import needs_extra


def test_a_missing_package_is_told_with_what_installs_it() -> None:
    told = r"^openai:m needs the package no_such_package, .*'antiphon\[openai\]'$"
    with pytest.raises(SpeechError, match=told), needs_extra("openai", "openai:m"):
        import no_such_package.part  # type: ignore[import-not-found]  # noqa: F401


def test_a_mistake_in_our_own_imports_stays_one() -> None:
    with pytest.raises(ModuleNotFoundError), needs_extra("openai", "openai:m"):
        import antiphon.no_such_module  # type: ignore[import-not-found]  # noqa: F401


def test_what_is_there_is_used() -> None:
    with needs_extra("local", "piper"):
        import json
    assert json.loads("1") == 1
