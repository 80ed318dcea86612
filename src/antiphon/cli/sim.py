"""`antiphon sim …`: simulators of the providers, to test a client against, offline and without an account."""

import asyncio
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from antiphon.cli.options import ConfigOption, settings_for

if TYPE_CHECKING:
    from antiphon.compose.sim import Simulator, SimulatorPlan
    from antiphon.config import Settings

app = typer.Typer(no_args_is_help=True)

GEMINI_PORT: Final = 8443
OPENAI_PORT: Final = 8765
OLLAMA_PORT: Final = 11435
"""Ollama's own port is 11434, where a real one may be running."""

PortOption = Annotated[int, typer.Option(min=0, max=65535, metavar="PORT", help="The port; 0 means any free port.")]
ScriptOption = Annotated[
    Path | None,
    typer.Option("--script", metavar="FILE.yaml", help="The faults to inject. docs/simulators.md has the format."),
]
ControlOption = Annotated[
    int | None,
    typer.Option(
        "--control-port",
        min=0,
        max=65535,
        metavar="PORT",
        help="Also listen here for HTTP requests that add faults and show the log while it runs. [default: off]",
    ),
]
ChaosOption = Annotated[
    int | None,
    typer.Option("--chaos", metavar="SEED", help="Inject random faults; the same seed gives the same faults."),
]
LogOption = Annotated[
    Path | None,
    typer.Option("--log", metavar="FILE", help="Append every message to this file, as JSON lines. [default: no log]"),
]
KeyOption = Annotated[
    str | None,
    typer.Option("--key", metavar="KEY", help="Accept only this API key. [default: any key]"),
]
AllowOption = Annotated[
    list[str] | None,
    typer.Option("--allow-model", metavar="NAME", help="Also accept this model name. May be given several times."),
]
ScaleOption = Annotated[
    float,
    typer.Option(
        "--time-scale", min=0.001, max=100_000, metavar="X", help="Let the provider's time limits pass X times faster."
    ),
]
SecondsOption = Annotated[
    float | None,
    typer.Option(
        "--connection-seconds",
        min=0.1,
        metavar="S",
        help="How long a connection may last. [default: the provider's limit]",
    ),
]
ModelOption = Annotated[
    str,
    typer.Option("--model", metavar="MODEL", help="The text model that answers, such as ollama:qwen3."),
]


@app.command(name="gemini-live")
def gemini_live(
    port: PortOption = GEMINI_PORT,
    script: ScriptOption = None,
    control_port: ControlOption = None,
    chaos: ChaosOption = None,
    log: LogOption = None,
    key: KeyOption = None,
    allow_model: AllowOption = None,
    time_scale: ScaleOption = 1.0,
    connection_seconds: SecondsOption = None,
    tls_dir: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where the TLS certificate is kept. [default: sim-tls in the data folder]"),
    ] = None,
    model: ModelOption = "builtin",
    config: ConfigOption = None,
) -> None:
    """Simulate Gemini Live for clients of the google SDK.

    It answers with the offline assistant and the local voice, calls the tools that the client declares, and misbehaves
    on command: --script, --control-port or --chaos.
    """
    settings = settings_for(config)
    _run(
        settings,
        simulated="gemini-live",
        port=port,
        script=script,
        control_port=control_port,
        chaos=chaos,
        log_path=log,
        tls_dir=tls_dir or settings.data_dir / "sim-tls",
        model=model,
        key=key,
        allow_model=allow_model,
        time_scale=time_scale,
        connection_s=connection_seconds,
    )


@app.command(name="openai-realtime")
def openai_realtime(
    port: PortOption = OPENAI_PORT,
    script: ScriptOption = None,
    control_port: ControlOption = None,
    chaos: ChaosOption = None,
    log: LogOption = None,
    key: KeyOption = None,
    allow_model: AllowOption = None,
    time_scale: ScaleOption = 1.0,
    connection_seconds: SecondsOption = None,
    model: ModelOption = "builtin",
    config: ConfigOption = None,
) -> None:
    """Simulate OpenAI and Azure Realtime for clients of the openai SDK.

    It answers with the offline assistant and the local voice, calls the tools that the client declares, and misbehaves
    on command: --script, --control-port or --chaos.
    """
    _run(
        settings_for(config),
        simulated="openai-realtime",
        port=port,
        script=script,
        control_port=control_port,
        chaos=chaos,
        log_path=log,
        model=model,
        key=key,
        allow_model=allow_model,
        time_scale=time_scale,
        connection_s=connection_seconds,
    )


@app.command(name="ollama")
def ollama(
    port: PortOption = OLLAMA_PORT,
    script: ScriptOption = None,
    control_port: ControlOption = None,
    chaos: ChaosOption = None,
    log: LogOption = None,
    allow_model: AllowOption = None,
    model: ModelOption = "builtin",
    config: ConfigOption = None,
) -> None:
    """Simulate an Ollama server.

    It answers with the offline assistant, calls the tools that the client sends, and misbehaves on command: --script,
    --control-port or --chaos.
    """
    _run(
        settings_for(config),
        simulated="ollama",
        port=port,
        script=script,
        control_port=control_port,
        chaos=chaos,
        log_path=log,
        model=model,
        allow_model=allow_model,
    )


def _run(
    settings: "Settings",
    *,
    simulated: str,
    allow_model: list[str] | None,
    key: str | None = None,
    time_scale: float = 1.0,
    connection_s: float | None = None,
    **fields: Any,
) -> None:
    from antiphon.compose.sim import Simulated, SimulatorPlan
    from antiphon.sim.vendors.base import Options

    options = Options(
        key=key, extra_models=frozenset(allow_model or ()), time_scale=time_scale, connection_s=connection_s
    )
    plan = SimulatorPlan(simulated=Simulated(simulated), options=options, **fields)
    with suppress(KeyboardInterrupt):
        # Not on uvloop: its sockets cannot be reset.
        asyncio.run(_serve(plan, settings))


async def _serve(plan: "SimulatorPlan", settings: "Settings") -> None:
    from antiphon.compose.sim import open_simulator

    stopped = asyncio.Event()
    with suppress(NotImplementedError):  # on Windows, where there is no such signal
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    typer.echo("Starting…")
    async with open_simulator(plan, settings) as simulator:
        for line in describe(plan, simulator):
            typer.echo(line)
        await stopped.wait()


def describe(plan: "SimulatorPlan", simulator: "Simulator") -> list[str]:
    """Tells what to set in a client, and how to control the simulator."""
    from antiphon.compose.sim import Simulated

    url = simulator.url
    port = url.rpartition(":")[2]
    key = plan.options.key or "any-key"
    lines = [f"Simulating {plan.simulated} at {url}. Press Ctrl-C to stop."]
    match plan.simulated:
        case Simulated.GEMINI_LIVE:
            assert simulator.certificates is not None
            ca = simulator.certificates.ca.absolute()
            lines += [
                "For a client of the google SDK, set these variables before it starts:",
                f"  export SSL_CERT_FILE={ca}",
                f"  export GOOGLE_GEMINI_BASE_URL=https://localhost:{port}",
                f"  export GEMINI_API_KEY={key}",
                "For Antiphon, set the same SSL_CERT_FILE and GEMINI_API_KEY, and in antiphon.toml:",
                f'  [model]\n  voice = "gemini-live:https://localhost:{port}#gemini-3.8-live"',
            ]
        case Simulated.OPENAI_REALTIME:
            lines += [
                "For a client of the openai SDK:",
                f'  client = AsyncOpenAI(base_url="{url}/v1", api_key="{key}")',
                '  client.realtime.connect(model="gpt-realtime-2")',
                f"For Antiphon, set OPENAI_API_KEY={key}, and in antiphon.toml:",
                f'  [model]\n  voice = "openai-realtime:{url}/v1#gpt-realtime-2"',
            ]
        case Simulated.OLLAMA:
            lines += [
                "For a client of Ollama, set this variable:",
                f"  export OLLAMA_HOST={url}",
                "For Antiphon, set the same variable, and in antiphon.toml:",
                '  [model]\n  text = "ollama:qwen3"',
            ]
    if simulator.control_url is not None:
        example = '\'{"when": {"seconds": 5}, "do": "reset"}\''
        lines.append(f"Add a fault: curl {simulator.control_url}/faults -d {example}")
    return lines
