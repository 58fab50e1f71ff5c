"""Metrics: what Prometheus reads at /metrics.

What the log and the store tell is looked up when it is asked for; so is what only a run knows (batches, rates, late
rows, windows), in the diary of its lineage, wherever the run is.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from penstock.errors import PenstockError
from penstock.serve.diary import lineage_with_plan, run_in
from penstock.serve.source import Served
from penstock.serve.watching import is_running

SIZE_SECONDS = 10.0
"""The size of files is looked up so often."""
COUNTED = (
    ("penstock_batches", "Batches that were committed.", "batches"),
    ("penstock_batch_seconds", "Seconds of work on batches.", "seconds"),
    ("penstock_read_frames", "Frames that were read.", "frames"),
    ("penstock_dead_letters", "Records that became dead letters.", "letters"),
)
"""What a run counts, and its name in the diary."""
COUNTED_BY = (
    ("penstock_batch_phase_seconds", "Where the seconds of batches went.", "phases", "phase"),
    ("penstock_source_records", "Records that were read of a source.", "records", "source"),
    ("penstock_changes", "Changes of a view.", "changes", "view"),
    ("penstock_late_rows", "Rows that came too late for a view.", "late", "view"),
)
MEASURED_BY = (
    ("penstock_open_windows", "Windows that are open.", "open", "view"),
    ("penstock_state_level_bytes", "Files of the state of a level.", "state", "level"),
)


class Requests:
    """What was asked over HTTP."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ["route", "status"]
        self._count = Counter("penstock_http_requests", "Requests that were answered.", labels, registry=registry)
        self._seconds = Counter("penstock_http_seconds", "Seconds until the answer began.", labels, registry=registry)

    def add(self, route: str, status: int, seconds: float) -> None:
        self._count.labels(route, status).inc()
        self._seconds.labels(route, status).inc(seconds)


class Ran(Collector):
    """What the run that is at work has done since it began, or the last one did."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def collect(self) -> Iterator[Metric]:
        running = is_running(self._served.home)
        yield GaugeMetricFamily("penstock_running", "Whether a run is at work.", value=running)
        folder = lineage_with_plan(self._served.home)
        run = None if folder is None else run_in(folder)
        yield from _done(run) if run else ()
        yield self._delays(run["watermarks"] if run else {})

    def _delays(self, told: dict[str, str]) -> Metric:
        """By what the log says, where the views know all of it; else by what the run has told."""
        now, known = datetime.now(UTC), self._served.watermarks()
        times = known or {stream: datetime.fromisoformat(time) for stream, time in told.items()}
        delays = {stream: max(0.0, (now - time).total_seconds()) for stream, time in times.items()}
        name, what = "penstock_watermark_delay_seconds", "From the watermark to now."
        return _labelled(GaugeMetricFamily(name, what, labels=["stream"]), delays)


def _done(run: dict[str, Any]) -> Iterator[Metric]:
    for name, what, field in COUNTED:
        yield CounterMetricFamily(name, what, value=run[field])
    records = sum(run["records"].values())
    yield CounterMetricFamily("penstock_read_records", "Records that were read.", value=records)
    began = datetime.fromisoformat(run["started_at"]).timestamp()
    yield GaugeMetricFamily("penstock_run_start_time_seconds", "When the run began, in Unix time.", value=began)
    for name, what, field, label in COUNTED_BY:
        yield _labelled(CounterMetricFamily(name, what, labels=[label]), run[field])
    for name, what, field, label in MEASURED_BY:
        yield _labelled(GaugeMetricFamily(name, what, labels=[label]), run[field])


def _labelled(family: CounterMetricFamily | GaugeMetricFamily, values: dict[str, float]) -> Metric:
    for name, value in values.items():
        family.add_metric([name], value)
    return family


class Standing(Collector):
    """What the log and the store say now."""

    def __init__(self, served: Served, followers: Callable[[], int]) -> None:
        self._served = served
        self._followers = followers
        self._sizes: tuple[float, int] = (-SIZE_SECONDS, 0)

    def collect(self) -> Iterator[Metric]:
        facts: list[tuple[str, str, float | None]] = [
            ("penstock_followers", "Readers that follow changes.", self._followers()),
            ("penstock_state_bytes", "Bytes of state in checkpoints.", self._state_bytes()),
        ]
        with suppress(PenstockError):  # then these are not there; /ready tells why
            facts += self._positions()
            facts += [
                ("penstock_lag_frames", "Frames that the views do not know yet.", self._served.lag()),
                ("penstock_log_frames", "Frames in the log.", self._served.log.mark().next_frame),
                ("penstock_restarts", "Runs after the first.", max(0, self._runs_so_far() - 1)),
            ]
        for name, what, value in facts:
            if value is not None:
                yield GaugeMetricFamily(name, what, value=value)

    def _positions(self) -> list[tuple[str, str, float | None]]:
        position = self._served.position()
        if position is None:
            return []
        return [
            ("penstock_view_frame", "The frame at which the views stand.", position.frame),
            ("penstock_view_batch", "The last batch of the views.", position.batch),
            ("penstock_lineage", "The lineage of the views.", position.lineage),
        ]

    def _runs_so_far(self) -> int:
        """Every run raises the pipeline's epoch."""
        return self._served.log.epoch(f"pipeline {self._served.pipeline.name}")

    def _state_bytes(self) -> int:
        if monotonic() - self._sizes[0] >= SIZE_SECONDS:
            found = sum(map(_size, self._served.home.glob("lineages/*/checkpoint/state/**/*")))
            self._sizes = monotonic(), found
        return self._sizes[1]


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size if path.is_file() else 0
    except OSError:  # Spark has tidied up meanwhile
        return 0


def exposed(registry: CollectorRegistry) -> bytes:
    return generate_latest(registry)
