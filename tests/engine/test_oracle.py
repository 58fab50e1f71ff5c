"""The law: after every batch each view equals its query run by Spark in batch over what was read."""

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from pyspark.sql import SparkSession

from tests.effort import SOAK
from tests.engine.conftest import Bench
from tests.engine.queries import INPUTS, SHAPES
from tests.engine.stories import Chapter, Story, stories

ROOMY = settings(
    max_examples=100 if SOAK else 3,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
EVERYTHING = {
    *INPUTS,
    *SHAPES,
    *("over", "view over view"),
    *(f"relation {name}" for name in "sdeg"),
    *("insert", "update", "deletion", "deletion from the bag"),
    *("deletion of a key that is not there", "deletion that finds nothing"),
}


@pytest.mark.spark
@ROOMY
@given(story=stories)
def test_random_views_equal_batch_after_every_batch(spark: SparkSession, story: Story) -> None:
    for tag in story.tags:
        event(tag)
    with tempfile.TemporaryDirectory() as folder:
        first, *later = story.chapters
        bench = Bench(spark, Path(folder), story.sql, **options(story, first))
        tell(bench, first)
        for chapter in later:
            bench.start(**options(story, chapter))
            tell(bench, chapter)
        assert bench.checked == len(bench.batches) > 0
        bench.log.close()


def options(story: Story, chapter: Chapter) -> dict[str, int]:
    return {"max_records_per_batch": chapter.most, "shuffle_partitions": story.partitions}


def tell(bench: Bench, chapter: Chapter) -> None:
    for frame in chapter.frames:
        bench.append(frame)
    bench.drain()
    bench.check()


def test_the_stories_tell_of_everything() -> None:
    told: Counter[str] = Counter()

    @settings(ROOMY, max_examples=30)
    @given(story=stories)
    def listen(story: Story) -> None:
        told.update(story.tags)

    listen()
    assert {tag for tag in EVERYTHING if told[tag] < 20} == set()
