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
    """
    for way in WAYS
)


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(10 if SOAK else 1))
def test_late_rows_are_those_of_the_plain_rule(bench: Callable[..., Bench], seed: int) -> None:
    random = Random(seed)
    shop = bench(STREAMS, max_records_per_batch=random.choice([20, 40]))
    story = Story(shop.log, random)
    for chapter in range(3):
        if chapter:
            shop.start(max_records_per_batch=random.choice([30, 100]))
        story.tell(40)
        shop.drain()
    shop.check(every=3)
    for way in WAYS:
        want = missed(story, way)
        assert want
        for view in (f"{way}_filling", f"{way}_done"):
            values: list[Any] = [e.value for e in shop.log.read(shop.ready.lineage.topic(late_rows(view)))]
            assert Counter((json.loads(value["row"])["id"], value["window_end"]) for value in values) == want


def missed(story: Story, way: By) -> Counter[tuple[int, datetime]]:
    found: Counter[tuple[int, datetime]] = Counter()
    for number, time in story.times.items():
        stamp = story.stamps[way][number]
        if time is not None and stamp is not None:
            end = START + ((time - START) // WINDOW + 1) * WINDOW
            found[number, end] += end <= stamp
    return +found
