"""Late rows of a pipeline on a bench: what its topics hold and its batches count, against what Spark batch says."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.engine.sinks import late_rows
from penstock.views import current
from penstock.views.missed import missed_windows
from tests.engine.conftest import Bench, QuickOracle

Windows = Counter[tuple[datetime | None, datetime | None]]
"""How many rows missed each, from its start to its end; without both, how many missed none."""


def late_of(shop: Bench, view: str) -> list[Any]:
    return [entry.value for entry in shop.log.read(shop.ready.lineage.topic(late_rows(view)))]


def check_topics(shop: Bench) -> Counter[str]:
    """All views that keep their late rows hold those of batch; the others have no topic. The reasons."""
    oracle = QuickOracle(shop.spark, shop.pipeline, shop.log.folder, shop.log.mark().next_frame)
    topics = {topic.name for topic in shop.log.topics()}
    found: Counter[str] = Counter()
    for view in shop.pipeline.views:
        has_topic = view.name in shop.ready.compiled.late and view.options.late != "drop"
        assert (shop.ready.lineage.topic(late_rows(view.name)) in topics) == has_topic, view
        values = late_of(shop, view.name) if has_topic else []
        assert Counter((value["relation"], value["row"]) for value in values) == Counter(oracle.late(view.name)), view
        found.update(value["reason"] for value in values)
    return found


def missed_of(shop: Bench) -> dict[str, Windows]:
    """What the batches of each view have counted."""
    lineage = current(shop.log, "test")
    assert lineage is not None
    found: dict[str, Windows] = {view.name: Counter() for view in shop.pipeline.views}
    for window, rows in missed_windows(shop.log, lineage).items():
        found[window.view][_time(window.start), _time(window.end)] += rows
    return found


def _time(micros: int | None) -> datetime | None:
    return None if micros is None else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
