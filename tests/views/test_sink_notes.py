"""What a sink notes for those who watch: it counts every failure, and stops nothing where it cannot be written."""

import errno
from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.log import Log, Place
from penstock.log.disk import Disk
from penstock.views.sinks.kafka import TopicSink
from penstock.views.sinks.memory import Held, Notes, held_in
from penstock.views.sinks.news import Source


class FullDisk(Disk):
    def write(self, file: int, pieces: Sequence[bytes], at: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_stops_nothing(tmp_path: Path) -> None:
    path = tmp_path / "sinks/spend.kafka.json"
    with Log.open(tmp_path / "log") as log:
        Notes(log, path, Disk()).reached(Place(7, 2))
        full = Notes(log, path, FullDisk())
        full.reached(Place(8))
        full.failed()
        assert held_in(path) == Held(log.identity, 7, 2)


def test_a_failure_of_any_kind_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "sinks/spend.kafka.json"
    with Log.open(tmp_path / "log") as log:
        wrong = {"throttle_cb": "not a function"}
        sink = TopicSink(Source(log, "shop", "spend"), "127.0.0.1:1", "spend", wrong, Notes(log, path, Disk()))
        for attempts in (1, 2):
            with pytest.raises(ValueError, match="throttle_cb"):
                sink.run(None)
            assert held_in(path) == Held(log.identity, 0, attempts=attempts)
