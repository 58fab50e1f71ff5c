"""Windows over a stream that waits for partitions, and one that waits for producers: which rows are late follows from
the plain rule over the log, whatever the cuts and restarts, and the rest is what Spark batch says.
"""

import json
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from penstock.engine.sinks import late_rows
from penstock.log.standing import By
from tests.effort import SOAK
from tests.engine.conftest import Bench
from tests.marking import COLUMNS, START, Story

WINDOW = timedelta(seconds=10)
WAYS: tuple[By, ...] = ("partition", "producer")
STREAMS = "".join(
    f"""
    CREATE STREAM by_{way} ({COLUMNS}) WITH (
      event_time = 'at', watermark = '5 seconds', watermark_by = '{way}', partitions = 3, topic = 'orders');
    CREATE VIEW {way}_filling AS
      SELECT window.start, count(*) AS n, max(id) AS last FROM by_{way} GROUP BY window(at, '10 seconds');
    CREATE VIEW {way}_done WITH (emit = 'final') AS
      SELECT window.start, count(*) AS n, max(id) AS last FROM by_{way} GROUP BY window(at, '10 seconds');
    CREATE VIEW {way}_hops WITH (emit = 'final', late = 'correct', allowed_lateness = '7 seconds') AS
      SELECT window.end, min(id) AS first FROM by_{way} GROUP BY window(at, '10 seconds', '5 seconds');
    CREATE VIEW {way}_sessions WITH (emit = 'final', late = 'drop') AS
      SELECT id % 2 AS part, session_window.start, session_window.end, sum(id) AS total
      FROM by_{way} GROUP BY id % 2, session_window(at, '2 seconds');
    CREATE VIEW {way}_sliding WITH (emit = 'final') AS
      SELECT id, count(*) OVER (ORDER BY at RANGE BETWEEN INTERVAL 4 SECONDS PRECEDING AND CURRENT ROW) AS n
      FROM by_{way};
    """
    for way in WAYS
)
STREAMS += """
    CREATE VIEW met WITH (emit = 'final') AS
      SELECT p.id, q.id AS other FROM by_partition p LEFT JOIN by_producer q
      ON p.id % 5 = q.id % 5 AND p.id <> q.id AND q.at BETWEEN p.at AND p.at + INTERVAL 3 SECONDS;
"""


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(10 if SOAK else 1))
def test_late_rows_are_those_of_the_plain_rule(bench: Callable[..., Bench], seed: int) -> None:
    shop, story = told(bench, seed, [20, 30, 100])
    shop.check(every=3)
    for way in WAYS:
        want = missed(story, way)
        assert want
        for view in (f"{way}_filling", f"{way}_done"):
            values: list[Any] = [e.value for e in shop.log.read(shop.ready.lineage.topic(late_rows(view)))]
            assert Counter((json.loads(value["row"])["id"], value["window_end"]) for value in values) == want
    other, _ = told(bench, seed, [500, 9, 60])
    assert len(other.batches) != len(shop.batches)
    assert outcome(other) == outcome(shop)


def told(bench: Callable[..., Bench], seed: int, cuts: list[int]) -> tuple[Bench, Story]:
    """A story in chapters, each read by a run of its own in batches of so many records."""
    shop = bench(STREAMS, max_records_per_batch=cuts[0])
    story = Story(shop.log, Random(seed))
    for cut in cuts:
        shop.start(max_records_per_batch=cut)
        story.tell(40)
        shop.drain()
    return shop, story


def outcome(shop: Bench) -> dict[str, Any]:
    """What all views have in the end, and which rows came too late for each, or how many."""
    views = [view.name for view in shop.pipeline.views]
    left = Counter[str]()
    for batch in shop.batches:
        left.update(batch.late)
    found: dict[str, Any] = {"late": left}
    for name in [*views, *(late_rows(view) for view in views if not view.endswith("_sessions"))]:
        rows: Counter[str] = Counter()
        for entry in shop.log.read(shop.ready.lineage.topic(name)):
            rows[str(entry.value)] += -1 if entry.deleted else 1
            if not entry.deleted and entry.replaces is not None:
                rows[str(entry.replaces)] -= 1
        found[name] = +rows
    return found


def missed(story: Story, way: By) -> Counter[tuple[int, datetime]]:
    found: Counter[tuple[int, datetime]] = Counter()
    for number, time in story.times.items():
        stamp = story.stamps[way][number]
        if time is not None and stamp is not None:
            end = START + ((time - START) // WINDOW + 1) * WINDOW
            found[number, end] += end <= stamp
    return +found
