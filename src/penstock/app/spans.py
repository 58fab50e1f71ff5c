"""Spans and metrics of OpenTelemetry, made of what a run writes down of its batches. Needs the extra `otel`.

A span for a batch, with its phases as children; they follow each other up to the moment at which the batch's frame was
in the log, and from there on.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import set_span_in_context

from penstock.app.chronicle import Written

SCOPE = "penstock"


class Spans:
    """`signals`: which of TRACES and METRICS are sent. Where to, and how, the environment says."""

    def __init__(self, pipeline: str, lineage: int, signals: Sequence[str]) -> None:
        ours = Resource({SERVICE_NAME: SCOPE, "penstock.pipeline": pipeline, "penstock.lineage": lineage})
        resource = Resource.create().merge(ours).merge(OTELResourceDetector().detect())  # what the user says is last
        self._traces = TracerProvider(resource=resource, shutdown_on_exit=False)
        readers = [PeriodicExportingMetricReader(OTLPMetricExporter())] if "METRICS" in signals else []
        self._metrics = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
        if "TRACES" in signals:
            self._traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._traces.get_tracer(SCOPE)
        self._figures = _Figures(self._metrics.get_meter(SCOPE))

    def add(self, written: Written) -> None:
        self._figures.add(written.line)
        line, phases = written.line, written.line["phases"]
        begun = written.framed_at - sum(phases.get(each, 0.0) for each in ("planning", "computing", "appending"))
        ended = max(begun + line["seconds"], written.framed_at + phases.get("committing", 0.0))
        span = self._tracer.start_span("batch", start_time=_nanos(begun), attributes=_attributes(line))
        within = set_span_in_context(span)
        for phase, start, seconds in _placed(written, ended):
            child = self._tracer.start_span(phase, context=within, start_time=_nanos(start))
            child.end(_nanos(start + seconds))
        span.end(_nanos(ended))

    def close(self) -> None:
        """What is not sent yet is sent now."""
        self._traces.shutdown()
        self._metrics.shutdown()


def _placed(written: Written, ended: float) -> Iterator[tuple[str, float, float]]:
    """The phases that are known, when each began, and how long it took."""
    phases, at = written.line["phases"], written.framed_at
    for phase in ("appending", "computing", "planning"):
        if phase in phases:
            at -= phases[phase]
            yield phase, at, phases[phase]
    if "committing" in phases:
        yield "committing", ended - phases["committing"], phases["committing"]
    if "storing" in phases:
        yield "storing", written.framed_at, phases["storing"]


def _attributes(line: dict[str, Any]) -> dict[str, int]:
    found = {
        "penstock.batch": line["batch"],
        "penstock.records": sum(line["records"].values()),
        "penstock.changes": sum(line["changes"].values()),
        "penstock.late_rows": sum(line["late"].values()),
        "penstock.dead_letters": line["letters"],
    }
    return found if line["frame"] is None else {**found, "penstock.frame": line["frame"]}


class _Figures:
    def __init__(self, meter: Meter) -> None:
        self._duration = meter.create_histogram("penstock.batch.duration", "s", "How long batches take.")
        self._phase = meter.create_histogram("penstock.batch.phase.duration", "s", "How long their phases take.")
        self._records = meter.create_counter("penstock.records", "{record}", "Records that were read.")
        self._changes = meter.create_counter("penstock.changes", "{change}", "Changes of views.")
        self._late = meter.create_counter("penstock.late_rows", "{row}", "Rows that came too late.")
        self._letters = meter.create_counter("penstock.dead_letters", "{record}", "Records that became dead letters.")
        self._delay = meter.create_gauge("penstock.watermark.delay", "s", "From the watermark to now.")
        self._state = meter.create_gauge("penstock.state.size", "By", "Files of state.")

    def add(self, line: dict[str, Any]) -> None:
        self._duration.record(line["seconds"])
        self._letters.add(line["letters"])
        for phase, seconds in line["phases"].items():
            self._phase.record(seconds, {"penstock.phase": phase})
        for source, count in line["records"].items():
            self._records.add(count, {"penstock.source": source})
        for counter, name in ((self._changes, "changes"), (self._late, "late")):
            for view, count in line[name].items():
                counter.add(count, {"penstock.view": view})
        for stream, time in line["watermarks"].items():
            delay = (datetime.now(UTC) - datetime.fromisoformat(time)).total_seconds()
            self._delay.set(max(0.0, delay), {"penstock.stream": stream})
        if line["state_bytes"] is not None:
            self._state.set(line["state_bytes"])


def _nanos(seconds: float) -> int:
    return int(seconds * 1e9)
