"""The contenders' side of `stt.py`: a process that recognises clips on request, and reports how long it took.

It also runs in the peers' environment, so it only needs the standard library.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

Recognize = Callable[[bytes, int], str]
"""Recognises 16 kHz PCM16 this many times at once, and returns the text."""


def answer(load: Callable[[], Recognize]) -> None:
    """Answers each line of input, `{"file": …, "at_once": …}`, with a line of JSON until the input ends."""
    begun_s = time.perf_counter()
    recognize = load()
    _write({"load_s": time.perf_counter() - begun_s})
    for line in sys.stdin:
        asked = json.loads(line)
        pcm = Path(asked["file"]).read_bytes()
        begun_s, cpu_s = time.perf_counter(), time.process_time()
        text = recognize(pcm, asked["at_once"])
        _write({"text": text, "s": time.perf_counter() - begun_s, "cpu_s": time.process_time() - cpu_s})


def _write(found: dict[str, object]) -> None:
    print(json.dumps(found), flush=True)
