"""Metrics: what Prometheus reads at /metrics.

What the log and the store tell is looked up when it is asked for. What only a run knows (batches, rates, late rows,
windows) is there where the run serves itself.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from penstock.errors import PenstockError
from penstock.serve.source import Served

SIZE_SECONDS = 10.0
"""The size of files is looked up so often."""


class Done(Protocol):
    """What a run has done since it told last."""

    @property
    def batches(self) -> int: ...
    @property
    def frames(self) -> int: ...
    @property
    def records(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def changes(self) -> Mapping[str, int]: ...
    @property
    def letters(self) -> int: ...
    @property
    def late(self) -> Mapping[str, int]: ...
    @property
    def watermarks(self) -> Mapping[str, datetime]: ...
    @property
    def open(self) -> Mapping[str, int]: ...


class Runs:
    """What a run tells, counted. `add` is called by whichever thread."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._lock = Lock()
        self._last: Done | None = None
        self._batches = Counter("penstock_batches", "Batches that were committed.", registry=self.registry)
        self._seconds = Counter("penstock_batch_seconds", "Seconds of work on batches.", registry=self.registry)
        self._frames = Counter("penstock_read_frames", "Frames that were read.", registry=self.registry)
        self._records = Counter("penstock_read_records", "Records that were read.", registry=self.registry)
        self._letters = Counter("penstock_dead_letters", "Records that became dead letters.", registry=self.registry)
        self._changes = Counter("penstock_changes", "Changes of a view.", ["view"], registry=self.registry)
        self._late = Counter(
            "penstock_late_rows", "Rows that came too late for a view.", ["view"], registry=self.registry
        )

    def add(self, done: Done) -> None:
        with self._lock:
            self._last = done
        self._batches.inc(done.batches)
        self._seconds.inc(done.seconds)
        self._frames.inc(done.frames)
        self._records.inc(done.records)
        self._letters.inc(done.letters)
        for view, count in done.changes.items():
            self._changes.labels(view).inc(count)
        for view, count in done.late.items():
            self._late.labels(view).inc(count)

    @property
    def watermarks(self) -> Mapping[str, datetime]:
        return {} if self._last is None else self._last.watermarks

    @property
    def open(self) -> Mapping[str, int]:
        return {} if self._last is None else self._last.open


class Requests:
    """What was asked over HTTP."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ["route", "status"]
        self._count = Counter("penstock_http_requests", "Requests that were answered.", labels, registry=registry)
        self._seconds = Counter("penstock_http_seconds", "Seconds until the answer began.", labels, registry=registry)

    def add(self, route: str, status: int, seconds: float) -> None:
        self._count.labels(route, status).inc()
        self._seconds.labels(route, status).inc(seconds)


class Standing(Collector):
    """What the log and the store say now."""

    def __init__(self, served: Served, runs: Runs, followers: Callable[[], int]) -> None:
        self._served = served
        self._runs = runs
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
        yield from self._by_name()

    def _positions(self) -> list[tuple[str, str, float | None]]:
        position = self._served.position()
        if position is None:
            return []
        return [
            ("penstock_view_frame", "The frame at which the views stand.", position.frame),
            ("penstock_view_batch", "The last batch of the views.", position.batch),
            ("penstock_lineage", "The lineage of the views.", position.lineage),
        ]

    def _by_name(self) -> Iterator[Metric]:
        delays = GaugeMetricFamily("penstock_watermark_delay_seconds", "From the watermark to now.", labels=["stream"])
        now = datetime.now(UTC)
        for stream, time in (self._served.watermarks() or self._runs.watermarks).items():
            delays.add_metric([stream], max(0.0, (now - time).total_seconds()))
        yield delays
        windows = GaugeMetricFamily("penstock_open_windows", "Windows that are open.", labels=["view"])
        for view, count in self._runs.open.items():
            windows.add_metric([view], count)
        yield windows

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
