"""`python -m bench.load.server FOLDER sqlite|memory [--profile FILE]`: the server under load, in its own process.

It writes the line of its address when it is ready. For each line of input it collects garbage, so that what it holds is
what it needs, and says so.
"""

import argparse
import asyncio
import cProfile
import gc
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

from antiphon.config import Settings, Storage
from antiphon.security.quota import LIMITS, Quota, Rate
from antiphon.serve import run_server
from antiphon.telemetry import log
from bench.load.model import LoadModel

PLENTY: Final = Rate(per_s=1e6, burst=1e6)
"""All clients come from one address as one user. The limits stay, and cost what they cost; nobody reaches them."""


def make_quota() -> Quota:
    return Quota({kind: replace(limit, user=PLENTY, address=PLENTY) for kind, limit in LIMITS.items()})


def collect() -> None:
    # An empty line is the end of the input, after which it would be readable for ever.
    if not sys.stdin.readline():
        asyncio.get_running_loop().remove_reader(sys.stdin)
        return
    gc.collect()
    print("collected", flush=True)


async def main(folder: Path, storage: str) -> None:
    asyncio.get_running_loop().add_reader(sys.stdin, collect)
    settings = Settings(project_dir=folder, data_dir=folder, storage=Storage(url=storage))
    await run_server(
        settings,
        port=0,
        announce=lambda line: print(line, flush=True),
        make_voice=LoadModel,
        quota=make_quota(),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("storage", choices=("sqlite", "memory"))
    parser.add_argument("--profile", type=Path, metavar="FILE")
    options = parser.parse_args()
    log.configure(json=True, level="warning")
    if options.profile is None:
        asyncio.run(main(options.folder, options.storage))
    else:
        with cProfile.Profile() as profile:
            asyncio.run(main(options.folder, options.storage))
        profile.dump_stats(options.profile)
