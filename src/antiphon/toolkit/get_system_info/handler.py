"""Describes the computer that the server runs on."""

import asyncio

from antiphon.tools.context import Args, Context
from antiphon.tools.result import Flyout, FlyoutType, ToolResult, ok

from .machine import Machine, read_machine


async def execute(args: Args, context: Context) -> ToolResult:
    # Reading several small files may be slow on a loaded machine.
    machine = await asyncio.to_thread(read_machine)
    return ok(
        {
            "system": machine.system,
            "kernel": machine.kernel,
            "architecture": machine.architecture,
            "processor": machine.processor,
            "cores": machine.cores,
            "threads": machine.threads,
            "memory_gb": machine.memory_gb,
            "python": machine.python,
        },
        spoken=speak(machine),
        flyout=Flyout(FlyoutType.TERMINAL, report(machine), title="System"),
    )


def speak(machine: Machine) -> str:
    system = machine.system.partition(" (")[0].replace("GNU/Linux", "Linux")
    cores = "one processor core" if machine.cores == 1 else f"{machine.cores} processor cores"
    memory = round(machine.memory_gb)
    size = "less than a gigabyte" if memory == 0 else "1 gigabyte" if memory == 1 else f"{memory} gigabytes"
    return f"This computer runs {system}, with {cores} and {size} of memory."


def report(machine: Machine) -> str:
    rows = {
        "System": machine.system,
        "Kernel": machine.kernel,
        "Architecture": machine.architecture,
        "Processor": machine.processor or "unknown",
        "Cores": f"{machine.cores} ({machine.threads} threads)",
        "Memory": f"{machine.memory_gb:.1f} GB",
        "Python": machine.python,
    }
    return "".join(f"{name:<13}{value}\n" for name, value in rows.items())
