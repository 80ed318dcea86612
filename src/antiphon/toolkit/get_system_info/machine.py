"""Reads the facts about a computer that do not change while it runs."""

import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

CPUINFO: Final = Path("/proc/cpuinfo")
BYTES_PER_GB: Final = 2**30


@dataclass(frozen=True, slots=True)
class Machine:
    system: str
    kernel: str
    architecture: str
    processor: str | None
    cores: int
    threads: int
    memory_gb: float
    python: str


def read_machine() -> Machine:
    """Reads files, so call it in a worker thread. The host's name is left out: it often names a person."""
    threads = psutil.cpu_count() or 1
    return Machine(
        system=system_name(),
        kernel=platform.release(),
        architecture=platform.machine(),
        processor=read_processor(CPUINFO),
        cores=psutil.cpu_count(logical=False) or threads,
        threads=threads,
        memory_gb=round(psutil.virtual_memory().total / BYTES_PER_GB, 1),
        python=platform.python_version(),
    )


def system_name() -> str:
    match platform.system():
        case "Linux":
            try:
                return platform.freedesktop_os_release()["PRETTY_NAME"]
            except OSError:
                return "Linux"
        case "Darwin":
            return f"macOS {platform.mac_ver()[0]}"
        case other:
            return f"{other} {platform.release()}"


def read_processor(cpuinfo: Path) -> str | None:
    """Returns the first processor's model. `platform.processor` is empty on Linux and starts a process elsewhere."""
    try:
        text = cpuinfo.read_text(errors="replace")
    except OSError:
        return None
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name" and value.strip():
            return " ".join(value.replace("(R)", "").replace("(TM)", "").split())
    return None
