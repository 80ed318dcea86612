"""Debian's Chromium, driven by Playwright."""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, sync_playwright

from tests.browser.scripted import FOREIGN_NAME

PROGRAM: Final = "chromium"
MISSING: Final = "The page is tested with Chromium, and it is not installed. Run `make system`."
ARGUMENTS: Final = (
    "--no-sandbox",
    # A microphone that beeps once a second, or plays a file. Whether a page may use it is decided by its permissions.
    "--use-fake-device-for-media-stream",
    f"--host-resolver-rules=MAP {FOREIGN_NAME} 127.0.0.1",
)


def find_chromium() -> str:
    program = shutil.which(PROGRAM)
    assert program is not None, MISSING
    return program


class Chromium:
    """A started Playwright, and the browsers that it has launched.

    As long as it is started, Playwright marks its own event loop as the running one of the thread, and no other test
    could run one. So it is marked only `while_used`.
    """

    def __init__(self) -> None:
        self._program = find_chromium()
        self._playwright = sync_playwright().start()
        self._loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)

    @contextmanager
    def while_used(self) -> Iterator[None]:
        asyncio._set_running_loop(self._loop)
        try:
            yield
        finally:
            asyncio._set_running_loop(None)

    def launch(self, *, microphone: Path | None = None, autoplay: bool = True, **options: Any) -> Browser:
        """`microphone` is a WAV file, heard once from the moment that a page opens the microphone. Without `autoplay`
        pages are silent until a person interacts with them."""
        heard = [] if microphone is None else [f"--use-file-for-fake-audio-capture={microphone}%noloop"]
        required = "no-user-gesture" if autoplay else "document-user-activation"
        policy = f"--autoplay-policy={required}-required"
        return self._playwright.chromium.launch(
            executable_path=self._program, args=[*ARGUMENTS, policy, *heard], **options
        )

    def stop(self) -> None:
        with self.while_used():
            self._playwright.stop()
