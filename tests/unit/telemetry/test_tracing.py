"""Which traces the standard variables ask for."""

import pytest

from antiphon.telemetry import tracing
from antiphon.telemetry.tracing import DEFAULT_ENDPOINT, TracingPlan, describe_tracing, find_tracer, plan_tracing

COLLECTOR = "http://collector:4318"


@pytest.mark.parametrize(
    ("environment", "exporters"),
    [
        ({}, ()),
        ({"OTEL_SERVICE_NAME": "mine"}, ()),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": COLLECTOR}, ("otlp",)),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{COLLECTOR}/v1/traces"}, ("otlp",)),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, ()),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, ("otlp",)),
        ({"OTEL_TRACES_EXPORTER": "console"}, ("console",)),
        ({"OTEL_TRACES_EXPORTER": "otlp, Console,otlp"}, ("otlp", "console")),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": COLLECTOR}, ()),
        ({"OTEL_SDK_DISABLED": "TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT": COLLECTOR}, ()),
        ({"OTEL_SDK_DISABLED": "false", "OTEL_EXPORTER_OTLP_ENDPOINT": COLLECTOR}, ("otlp",)),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, ("otlp",)),
        ({"OTEL_TRACES_EXPORTER": "console", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, ("console",)),
    ],
)
def test_the_standard_variables_choose_the_exporters(environment: dict[str, str], exporters: tuple[str, ...]) -> None:
    plan = plan_tracing(environment)
    assert (plan.exporters, plan.problem) == (exporters, None)


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER is 'zipkin', which is not known here. Use otlp,"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": COLLECTOR, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc'. Only http/protobuf is supported",
        ),
        (
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"},
            "'http/json'. Only http/protobuf is supported",
        ),
    ],
)
def test_a_value_that_is_not_supported_is_explained(environment: dict[str, str], says: str) -> None:
    plan = plan_tracing(environment)
    assert plan.exporters == ()
    assert says in str(plan.problem)
    assert str(describe_tracing(plan)).startswith("There are no traces: OTEL_")


def test_missing_packages_are_named_only_if_traces_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_PACKAGES", ("opentelemetry.sdk", "opentelemetry.no_such_package"))
    assert plan_tracing({}) == TracingPlan()
    plan = plan_tracing({"OTEL_EXPORTER_OTLP_ENDPOINT": COLLECTOR})
    assert plan.exporters == ()
    assert "pip install 'antiphon[otel]'" in str(plan.problem)


@pytest.mark.parametrize(
    ("plan", "line"),
    [
        (TracingPlan(), None),
        (TracingPlan(("otlp",), COLLECTOR), f"Traces are sent to {COLLECTOR}."),
        (
            TracingPlan(("otlp", "console")),
            f"Traces are sent to {DEFAULT_ENDPOINT} and written to standard output.",
        ),
    ],
)
def test_people_are_told_where_traces_go(plan: TracingPlan, line: str | None) -> None:
    assert describe_tracing(plan) == line


def test_a_process_without_tracing_has_no_tracer() -> None:
    assert find_tracer("antiphon") is None
