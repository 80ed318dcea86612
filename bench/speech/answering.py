"""The contenders' side of `stt.py`: a process that recognises what it is asked to, and says how long it took.

It runs in the peers' environment too, so it stands on the standard library alone.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

Recognize = Callable[[bytes, int], str]
"""From 16 kHz PCM16 to its text, as often as said, at the same time."""


def answer(load: Callable[[], Recognize]) -> None:
    """Until the input ends: a line of JSON in, `{"file": …, "at_once": …}`, and a line out."""
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
