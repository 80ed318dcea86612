"""Traces: which exporters the standard OTEL_* variables ask for, and the SDK behind the API while a server runs.

The SDK is an extra. Without it, and without the variables, nothing is traced and nothing costs time.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from opentelemetry import trace

from antiphon.telemetry.log import get_logger

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

SERVICE: Final = "antiphon"
FLUSH_S: Final = 3.0
"""How long a server that stops waits for its last spans to be sent."""
EXPORTERS: Final = ("otlp", "console")
PROTOCOL: Final = "http/protobuf"
DEFAULT_ENDPOINT: Final = "http://localhost:4318"

_PACKAGES: Final = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
INSTALL: Final = "Run: pip install 'antiphon[otel]'"

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class TracingPlan:
    """What the environment asks for."""

    exporters: tuple[str, ...] = ()
    """Where spans go: otlp, console, or nowhere."""
    endpoint: str = DEFAULT_ENDPOINT
    """Where the collector is, for people."""
    problem: str | None = None
    """Why there are no traces although they are asked for: a sentence that says what to do."""


def plan_tracing(environment: Mapping[str, str]) -> TracingPlan:
    """Reads the standard variables. What concerns the exporter alone, such as headers, the SDK reads itself."""

    def read(*names: str) -> str:
        # An empty variable counts as unset, as the specification wants.
        return next((value for name in names if (value := environment.get(name, "").strip())), "")

    if read("OTEL_SDK_DISABLED").lower() == "true":
        return TracingPlan()
    endpoint = read("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    named = [each.strip().lower() for each in read("OTEL_TRACES_EXPORTER").split(",") if each.strip()]
    wanted = tuple(dict.fromkeys(named or (["otlp"] if endpoint else [])))
    if "none" in wanted:
        wanted = ()
    unknown = [each for each in wanted if each not in EXPORTERS]
    if unknown:
        known = "otlp, console or none"
        return TracingPlan(problem=f"OTEL_TRACES_EXPORTER is {unknown[0]!r}, which is not known here. Use {known}.")
    protocol = read("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL") or PROTOCOL
    if "otlp" in wanted and protocol != PROTOCOL:
        return TracingPlan(
            problem=f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol!r}. Only {PROTOCOL} is supported: set it to that, and "
            "the endpoint to the collector's HTTP port, which is usually 4318."
        )
    if wanted and not _is_installed():
        return TracingPlan(problem=f"The OTEL_* variables ask for traces, which need packages of an extra. {INSTALL}")
    return TracingPlan(wanted, endpoint or DEFAULT_ENDPOINT)


def describe_tracing(plan: TracingPlan) -> str | None:
    """Returns a line for people; None if nothing was asked for."""
    if plan.problem is not None:
        return f"There are no traces: {plan.problem}"
    if not plan.exporters:
        return None
    targets = {"otlp": f"sent to {plan.endpoint}", "console": "written to standard output"}
    return f"Traces are {' and '.join(targets[each] for each in plan.exporters)}."


def find_tracer(name: str) -> trace.Tracer | None:
    """Returns None unless the process has set up tracing: unrecorded spans would cost a quarter of the gate's time."""
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        return None
    return provider.get_tracer(name)


@asynccontextmanager
async def tracing(
    environment: Mapping[str, str], version: str, announce: Callable[[str], None] = lambda line: None
) -> AsyncIterator[None]:
    """Traces for the duration of the block what the variables ask for. The rest of the spans is sent at its end."""
    plan = plan_tracing(environment)
    line = describe_tracing(plan)
    if line is not None:
        announce(line)
    if plan.problem is not None:
        log.warning("tracing_not_available", reason=plan.problem)
    if not plan.exporters or find_tracer(SERVICE) is not None:
        # A program that has set up tracing itself keeps its own.
        yield
        return
    # In a thread, since the packages take half a second to load.
    provider = await asyncio.to_thread(_make_provider, plan, version)
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        await _shut_down(provider)


def _is_installed() -> bool:
    try:
        return all(find_spec(package) is not None for package in _PACKAGES)
    except ModuleNotFoundError:
        return False


def _make_provider(plan: TracingPlan, version: str) -> "TracerProvider":
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

    ours = Resource({"service.name": SERVICE, "service.version": version})
    # What the variables say wins; the SDK's own name for a service without one does not.
    given = Resource.create()
    is_named = not str(given.attributes.get("service.name", "")).startswith("unknown_service")
    resource = ours.merge(given) if is_named else given.merge(ours)
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    for each in plan.exporters:
        if each == "console":
            provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter()))
        else:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


async def _shut_down(provider: "TracerProvider") -> None:
    """Sends what is left, for a while: a collector that does not answer must not keep a server from stopping."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def shut_down() -> None:
        provider.shutdown()
        with suppress(RuntimeError):
            # The loop may be closed by now.
            loop.call_soon_threadsafe(done.set)

    # A daemon thread, which the interpreter does not wait for.
    threading.Thread(target=shut_down, daemon=True, name="tracing-shutdown").start()
    try:
        async with asyncio.timeout(FLUSH_S):
            await done.wait()
    except TimeoutError:
        log.warning("spans_not_sent", waited_s=FLUSH_S)
