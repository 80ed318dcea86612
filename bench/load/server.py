"""`python -m bench.load.server FOLDER sqlite|memory [--ears PHRASES | --voice MODEL] [--profile FILE]`: the server.

It prints its address when it is ready. For each line of input it collects garbage, so that its memory is what it needs,
and reports that.
"""

import argparse
import asyncio
import cProfile
import gc
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from antiphon.config import Model, Settings, Storage, load
from antiphon.models.providers.references import NO_VOICE
from antiphon.security.quota import LIMITS, Quota, Rate
from antiphon.serve import run_server
from antiphon.server.serving import run_loop
from antiphon.telemetry import log
from bench.load.model import LOAD_MODEL

PLENTY: Final = Rate(per_s=1e6, burst=1e6)
"""All clients have one address and one user. The limits are still checked, but nobody reaches them."""


def make_quota() -> Quota:
    return Quota({kind: replace(limit, user=PLENTY, address=PLENTY) for kind, limit in LIMITS.items()})


def collect() -> None:
    # At the end of the input, it would stay readable for ever.
    if not sys.stdin.readline():
        asyncio.get_running_loop().remove_reader(sys.stdin)
        return
    gc.collect()
    print("collected", flush=True)


async def main(folder: Path, storage: str, phrases: Path | None, voice: str | None) -> None:
    asyncio.get_running_loop().add_reader(sys.stdin, collect)
    settings = Settings(
        project_dir=folder,
        data_dir=folder,
        shared_models_dir=load(None).models_dir,
        storage=Storage(url=storage),
        model=Model(voice=voice or NO_VOICE),
    )
    async with AsyncExitStack() as stack:
        # A voice of the settings is opened by the server itself.
        voice_model = LOAD_MODEL if voice is None else None
        if phrases is not None:
            # Imported only here: the scripted voice does not need the libraries behind it.
            from bench.load.ears import open_ears

            voice_model = await stack.enter_async_context(open_ears(settings, phrases))
        await run_server(
            settings,
            port=0,
            announce=lambda line: print(line, flush=True),
            voice_model=voice_model,
            needs_voice=voice is not None,
            quota=make_quota(),
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("storage", choices=("sqlite", "memory"))
    parser.add_argument("--ears", type=Path, metavar="PHRASES")
    parser.add_argument("--voice", metavar="MODEL", help="the live model of a provider, as in the settings")
    parser.add_argument("--profile", type=Path, metavar="FILE")
    options = parser.parse_args()
    log.configure(json=True, level="warning")
    run = main(options.folder, options.storage, options.ears, options.voice)
    if options.profile is None:
        run_loop(run)
    else:
        with cProfile.Profile() as profile:
            run_loop(run)
        profile.dump_stats(options.profile)
