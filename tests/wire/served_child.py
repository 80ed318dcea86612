"""The whole server in its own process. It reads its pickled plan from stdin and prints its announcement to stdout."""

import pickle
import resource
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from antiphon.models import bounded
from antiphon.models.live import ModelFactory
from antiphon.security.quota import Quota
from antiphon.serve import run_server
from antiphon.server import serving
from antiphon.server.connections import Deadlines
from antiphon.server.serving import run_loop
from antiphon.telemetry import log
from tests.fakes.scripted_live import PROFILE, ScriptedLive
from tests.wire.served import Plan


async def run(plan: Plan) -> None:
    if plan.turn_s is not None:
        bounded.MAX_TURN_S = plan.turn_s  # type: ignore[misc]
    if plan.write_s is not None:
        serving.Deadlines = partial(Deadlines, write_s=plan.write_s)  # type: ignore[attr-defined, assignment]
    await run_server(
        plan.settings,
        port=0,
        announce=lambda line: print(line, flush=True),
        voice_model=None if plan.voice is None else ModelFactory(PROFILE, lambda: ScriptedLive(plan.voice or ())),
        quota=None if plan.limits is None else Quota(plan.limits),
    )


def main(serve: Callable[[Plan], Coroutine[Any, Any, None]] = run) -> None:
    plan: Plan = pickle.load(sys.stdin.buffer)
    if plan.max_file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (plan.max_file_bytes, resource.RLIM_INFINITY))
    log.configure(json=True, level="info")
    run_loop(serve(plan))


if __name__ == "__main__":
    main()
