"""The log on Kafka keeps what is promised of one order, but for what Kafka has otherwise: offsets have gaps, the broker
has the clock, nobody knows under whose name a record was written, and records of other topics than the log's own are
admitted one by one, not append by append.

Of the contract of every log it keeps what the plain log on Kafka does not keep for it, but for this: it ends where the
order does, so other handles see records a moment later, and a condition on an end is one of the plain log.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock.log.correction import Correction
from penstock.log.kafka import KafkaAppended, OrderedKafkaLog
from penstock.log.topic import EventTime
from services.kafka import Cluster
from tests.log.contract import (  # noqa: F401
    NOON,
    ORDERS,
    SECOND,
    shop,
    test_a_closed_log_refuses_appends,
    test_a_partition_can_be_chosen,
    test_a_partition_that_does_not_exist_is_refused,
    test_an_arrow_table_is_appended_as_it_is_read,
    test_an_offset_of_a_topic_with_partitions_needs_the_partition,
    test_an_unknown_topic_is_refused_with_the_nearest_name,
    test_batches_hold_the_columns_asked_for,
    test_declaring_a_topic_again_equally_changes_nothing,
    test_offsets_rise_from_zero_and_lie_before_the_end,
    test_reading_begins_at_an_offset_and_ends_before_one,
    test_topics_are_listed_by_name,
    test_what_is_read_is_what_was_there_when_reading_began,
    wide,
)
from tests.log.contract_appends import (  # noqa: F401
    test_a_misfit_in_one_topic_keeps_all_topics_as_they_were,
    test_a_refused_append_does_not_use_up_its_sequence,
    test_a_repeated_sequence_of_a_producer_is_not_appended_again,
    test_an_append_of_an_old_epoch_is_refused_as_a_whole,
    test_an_empty_append_is_remembered_for_its_producer,
    test_threads_append_side_by_side,
)
from tests.log.contract_marks import (  # noqa: F401
    test_marks_can_depend_on_an_epoch,
    test_the_watermark_of_a_stream_follows_the_largest_event_time,
    test_the_watermark_of_partitions_is_the_least_of_those_that_count,
    test_who_has_not_joined_cannot_announce_or_leave,
)
from tests.log.contract_one_order import (  # noqa: F401
    test_a_description_counts_records_and_knows_the_largest_event_time,
    test_a_scope_that_no_reader_could_read_is_refused,
)
from tests.log.contract_values import (  # noqa: F401
    READINGS,
    test_a_record_can_carry_the_row_that_it_replaces,
    test_a_record_can_mark_a_deletion_and_needs_only_its_key,
    test_a_record_carries_headers,
    test_corrected_event_times_are_made_when_records_are_appended,
)


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


def test_implausible_event_times_move_no_watermark(log: Admitting) -> None:
    now = datetime.now(UTC)
    log.create_topic("orders", ORDERS, event_time=EventTime("at", plausible=timedelta(minutes=5)))
    log.append("orders", [{"id": 1, "at": now}, {"id": 2, "at": now + timedelta(hours=1)}])
    assert log.describe("orders").partitions[0].largest_time == now
    assert log.watermark("orders", delay=SECOND) == now - SECOND


def test_corrected_event_times_move_the_watermark(log: Admitting) -> None:
    time = EventTime("at", corrected=Correction("made", "sent", "got", timedelta(hours=1)))
    log.create_topic("readings", READINGS, event_time=time)
    log.append("readings", [{"made": NOON, "sent": NOON, "got": NOON + SECOND}, {"made": NOON}, {}])
    assert log.describe("readings").partitions[0].largest_time == NOON + SECOND
