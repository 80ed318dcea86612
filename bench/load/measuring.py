"""Measures one number of sessions on a new server."""

import asyncio
import gc
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, process_time
from typing import Final

from bench.load.crowd import Crowd
from bench.load.figures import Figures, Load, Spread, spreads, undisturbed
from bench.load.host import Host
from bench.load.people import People
from bench.load.process import ServerProcess, load_server, started

IDLE_S: Final = 3.0


def run(
    people: People, load: Load, seconds: float, core: int, work_dir: Path, profile_path: Path | None = None
) -> Figures:
    """Measures on a new server, because memory that was used once is not given back and would distort the next run."""
    host = Host([core, *os.sched_getaffinity(0)])
    # Not in /tmp, which is often in memory and would make SQLite look faster.
    with TemporaryDirectory(dir=work_dir) as folder:
        command = load_server(Path(folder), load.storage, people.phrases_dir, profile_path)
        with started(command, core) as server:
            return asyncio.run(
                _stream(people, server, load, seconds, host) if load.streaming else _idle(people, server, load, host)
            )


async def _stream(people: People, server: ServerProcess, load: Load, seconds: float, host: Host) -> Figures:
    """All sessions talk all the time."""
    before_bytes = await _warm_up(people, server)
    crowd = people.make_crowd(server.address, load.sessions)
    await crowd.gather(load.sessions)
    # Garbage collection in this process would stop all clients at once, and messages would seem late.
    gc.freeze()
    gc.disable()
    talking = asyncio.create_task(crowd.talk_measured(people.warm_s, seconds))
    await asyncio.sleep(people.warm_s)
    watching = asyncio.create_task(host.watch(seconds + crowd.late_s))
    cpu = await _measure_cpu(server, seconds)
    await talking
    await watching
    gc.enable()
    held_bytes = server.rss_bytes() - before_bytes
    await crowd.leave()
    return _sum_up(load, crowd, cpu, held_bytes, host)


async def _idle(people: People, server: ServerProcess, load: Load, host: Host) -> Figures:
    """Each session has one turn and is then silent."""
    before_bytes = await _warm_up(people, server)
    crowd = people.make_crowd(server.address, load.sessions)
    await crowd.gather(load.sessions)
    await crowd.talk_once()
    await asyncio.sleep(crowd.late_s)
    cpu = await _measure_cpu(server, IDLE_S)
    held_bytes = server.rss_bytes() - before_bytes
    await crowd.leave()
    return _sum_up(load, crowd, cpu, held_bytes, host)


async def _warm_up(people: People, server: ServerProcess) -> int:
    """Runs a few sessions from beginning to end, and returns the server's memory afterwards."""
    crowd = people.make_crowd(server.address, people.first)
    await crowd.gather(people.first)
    await crowd.talk_once()
    await crowd.leave()
    return server.rss_bytes()


async def _measure_cpu(server: ServerProcess, seconds: float) -> tuple[float, float]:
    """Measures the shares of a core that the server and this process use."""
    begun_s, server_s, own_s = monotonic(), server.cpu_s(), process_time()
    await asyncio.sleep(seconds)
    passed_s = monotonic() - begun_s
    return (server.cpu_s() - server_s) / passed_s, (process_time() - own_s) / passed_s


def _sum_up(load: Load, crowd: Crowd, cpu: tuple[float, float], held_bytes: int, host: Host) -> Figures:
    took_ms, by_kind = spreads(crowd.ledger)
    return Figures(
        load=load,
        server_cpu=cpu[0],
        generator_cpu=cpu[1],
        generator_late_ms=Spread.of(crowd.sent_late_ms),
        rss_kb_a_session=held_bytes / load.sessions / 1000,
        took_ms=took_ms,
        took_ms_by_kind=by_kind,
        undisturbed_ms=undisturbed(crowd.ledger, host),
        stolen=host.stolen,
        begun=crowd.ledger.begun,
        turns=crowd.ledger.turns,
        problems=crowd.ledger.problems[:10],
    )
