"""A collector of traces that takes OTLP over HTTP, as a server's exporter sends them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.fakes.local_http import Received, Reply, served_in_thread

PATH = "/v1/traces"


@dataclass(frozen=True)
class CollectedSpan:
    name: str
    trace_id: bytes
    span_id: bytes
    parent_id: bytes
    start_ns: int
    end_ns: int
    attributes: dict[str, Any]
    events: dict[str, int]
    """The times of the events, by their names."""
    is_error: bool
    resource: dict[str, Any]

    @property
    def ms(self) -> float:
        return (self.end_ns - self.start_ns) / 1e6


@dataclass
class CollectedTrace:
    """A turn and its stages."""

    root: CollectedSpan
    spans: Sequence[CollectedSpan]
    """All other spans, in the order in which they began."""

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.spans]

    def one(self, name: str) -> CollectedSpan:
        [found] = [span for span in self.spans if span.name == name]
        return found

    def tree(self) -> str:
        """Draws the spans, for people."""
        lines = []
        for span in (self.root, *self.spans):
            depth = self._depth(span)
            from_ms = (span.start_ns - self.root.start_ns) / 1e6
            events = ", ".join(f"{name} at {(at - self.root.start_ns) / 1e6:.0f}" for name, at in span.events.items())
            name = "  " * depth + span.name
            lines.append(f"{name:<28} {from_ms:>8.0f} ms  +{span.ms:.0f} ms{'  (' + events + ')' if events else ''}")
        return "\n".join(lines)

    def _depth(self, span: CollectedSpan) -> int:
        parents = {each.span_id: each for each in (self.root, *self.spans)}
        depth = 0
        while span.parent_id:
            span, depth = parents[span.parent_id], depth + 1
        return depth


@dataclass
class Collector:
    url: str = ""
    spans: list[CollectedSpan] = field(default_factory=list)
    requests: list[Received] = field(default_factory=list)

    def take(self, request: Received) -> Reply:
        self.requests.append(request)
        if request.path != PATH or request.headers.get("content-type") != "application/x-protobuf":
            return Reply(status=404)
        for group in ExportTraceServiceRequest.FromString(request.body).resource_spans:
            resource = {each.key: _value(each.value) for each in group.resource.attributes}
            for scope in group.scope_spans:
                self.spans += [_span(each, resource) for each in scope.spans]
        return Reply(headers={"content-type": "application/x-protobuf"})

    @property
    def turns(self) -> list[CollectedTrace]:
        """The traces of turns, the earliest first."""
        roots = sorted((span for span in self.spans if span.name == "turn"), key=lambda span: span.start_ns)
        return [self._trace(root) for root in roots]

    def _trace(self, root: CollectedSpan) -> CollectedTrace:
        others = [span for span in self.spans if span.trace_id == root.trace_id and span is not root]
        return CollectedTrace(root, sorted(others, key=lambda span: span.start_ns))


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()
    with served_in_thread(collector.take) as collector.url:
        yield collector


def _span(span: Any, resource: dict[str, Any]) -> CollectedSpan:
    return CollectedSpan(
        name=span.name,
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_id=span.parent_span_id,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        attributes={each.key: _value(each.value) for each in span.attributes},
        events={each.name: each.time_unix_nano for each in span.events},
        is_error=span.status.code == 2,
        resource=resource,
    )


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))
