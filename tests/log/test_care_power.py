"""Whenever the power fails while records go: what is to stay is there, and the next run ends it."""

import shutil
from datetime import timedelta
from pathlib import Path
from random import Random

from penstock.log import Log
from penstock.log.retention import FOREVER, Retention
from tests.effort import SOAK
from tests.log.disks import QuickDisk
from tests.log.power import FailingPower
from tests.log.test_compaction import fill, folded
from tests.log.test_excision import KEY, with_bytes
from tests.log.test_retention import DAY, Clock


def care_for(log: Log, clock: Clock) -> None:
    """Everything that takes records away, one after the other."""
    for _ in range(2):
        log.compact(["t"])
        clock.now += 9 * DAY
    log.change_retention("old", Retention(age=timedelta(days=1)))
    log.retain()
    log.change_retention("old", FOREVER)
    log.excise("people", {"name": KEY})


def test_after_a_power_failure_at_any_operation_everything_that_stays_is_there(tmp_path: Path) -> None:
    images: list[Path] = []
    random, clock, watching = Random(2), Clock(), False

    def watch(disk: FailingPower) -> None:
        if watching and (SOAK or random.random() < 0.25):
            images.append(tmp_path / f"image {disk.done}")
            disk.image(images[-1], random)

    (tmp_path / "disk").mkdir()
    with Log.open(tmp_path / "disk" / "log", disk=FailingPower(tmp_path / "disk", watch), clock=clock) as log:
        fill(log)
        log.create_topic("old", "id INT")
        log.create_topic("people", "name STRING", key="name")
        log.append_all({"old": [{"id": 1}], "people": [{"name": KEY}, {"name": "bob"}]})
        want = folded(log)
        watching = True
        care_for(log, clock)
        watching = False
    for image in images:
        with Log.open(image / "log", disk=QuickDisk(), clock=clock) as log:
            assert folded(log) == want and ("bob",) in [entry.key for entry in log.read("people")]
            assert [entry.offset for entry in log.read("old")] == list(range(log.begins("old")[0], 1))
            assert [problem for finding in log.check() for problem in finding.damage] == []
            care_for(log, clock)
            assert folded(log) == want and list(log.read("old")) == []
        assert with_bytes(image / "log") == []
        shutil.rmtree(image)
    assert len(images) > 10
