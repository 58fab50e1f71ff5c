"""The log on Kafka keeps what is promised of one order, but for what Kafka has otherwise: offsets have gaps, the broker
has the clock, nobody knows under whose name a record was written, and records of other topics than the log's own are
admitted one by one, not append by append.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.log.kafka import KafkaAppended, OrderedKafkaLog
from services.kafka import Cluster
from tests.log.contract import shop, wide  # noqa: F401
from tests.log.contract_marks import (
    test_marks_can_depend_on_an_epoch,
    test_the_watermark_of_a_stream_follows_the_largest_event_time,
    test_the_watermark_of_partitions_is_the_least_of_those_that_count,
    test_who_has_not_joined_cannot_announce_or_leave,
)
from tests.log.contract_one_order import (
    test_a_description_counts_records_and_knows_the_largest_event_time,
    test_a_scope_that_no_reader_could_read_is_refused,
)

__all__ = [
    "test_a_description_counts_records_and_knows_the_largest_event_time",
    "test_a_scope_that_no_reader_could_read_is_refused",
    "test_marks_can_depend_on_an_epoch",
    "test_the_watermark_of_a_stream_follows_the_largest_event_time",
    "test_the_watermark_of_partitions_is_the_least_of_those_that_count",
    "test_who_has_not_joined_cannot_announce_or_leave",
]


class Admitting(OrderedKafkaLog):
    """Whoever appends waits until it is in the order."""

    def append(self, topic: str, rows: Any, **how: Any) -> KafkaAppended:
        done = super().append(topic, rows, **how)
        self.settle()
        return done

    def append_all(self, rows: Any, **how: Any) -> KafkaAppended:
        done = super().append_all(rows, **how)
        self.settle()
        return done

    def seal(self) -> None:
        """There are no stretches here."""


@pytest.fixture
def open_log(kafka: Cluster, prefix: str) -> Iterator[Callable[..., Admitting]]:
    opened: list[Admitting] = []

    def open_() -> Admitting:
        opened.append(Admitting.open(kafka.servers, prefix=prefix, admits=not opened))
        return opened[-1]

    yield open_
    for log in opened:
        log.close()


@pytest.fixture
def log(open_log: Callable[..., Admitting]) -> Admitting:
    return open_log()
