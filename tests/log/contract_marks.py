"""The contract of a log with one order, of watermarks: partitions, producers, idleness, punctuation, event times that
nobody believes.
"""

from datetime import timedelta

import pyarrow as pa
import pytest

from penstock.errors import ConditionFailed, LogError
from penstock.log import Epoch, Log
from penstock.log.correction import Correction
from penstock.log.topic import EventTime
from tests.log.contract import NOON, ORDERS, SECOND, Opener
from tests.log.contract_values import READINGS
from tests.texts import refused


def bring(log: Log, number: int, seconds: int, *, producer: str | None = None, sequence: int | None = None) -> None:
    row = {"id": number, "at": NOON + seconds * SECOND}
    log.append("orders", [row], partition=number, producer=producer, sequence=sequence)


def test_the_watermark_of_a_stream_follows_the_largest_event_time(log: Log) -> None:
    log.create_topic("orders", ORDERS, partitions=2, event_time="at")
    assert log.watermark("orders", delay=SECOND) is None
    bring(log, 0, 10)
    bring(log, 1, 5)
    assert log.watermark("orders", delay=SECOND) == NOON + 9 * SECOND
    assert log.watermark("orders") is None
    log.punctuate("orders", NOON + 20 * SECOND, scope="shop")
    assert log.watermark("orders", delay=SECOND, scope="shop") == NOON + 20 * SECOND
    assert log.watermark("orders", delay=SECOND, scope="other") == NOON + 9 * SECOND


def test_the_watermark_of_partitions_is_the_least_of_those_that_count(open_log: Opener) -> None:
    log = open_log()
    log.create_topic("orders", ORDERS, partitions=3, event_time="at")

    def level(scope: str = "shop") -> object:
        found = open_log().watermark("orders", delay=SECOND, by="partition", scope=scope)
        return None if found is None else (found - NOON) // SECOND

    bring(log, 0, 10)
    bring(log, 1, 20)
    assert level() is None, "a partition that never had a record is waited for"
    log.rest("orders", partitions=[2], scope="shop")
    assert (level(), level("other")) == (9, None)
    log.rest("orders", partitions=[0], scope="shop")
    assert level() == 19
    bring(log, 0, 12)
    assert level() == 19, "it never goes back"
    log.seal()
    bring(log, 0, 30)
    bring(log, 1, 30)
    assert level() == 29 and log.describe("orders").partitions[2].idle == {"shop"}
    bring(log, 2, 25)
    assert (level(), level("other")) == (29, 24)
    log.rest("orders", partitions=[0, 1, 2])
    assert level() == 29, "where all are idle, it stands"


def test_the_watermark_of_producers_waits_for_those_that_have_joined(open_log: Opener) -> None:
    log = open_log()
    log.create_topic("orders", ORDERS, event_time="at")
    one, two = log.producer("one"), log.producer("two")

    def level() -> object:
        found = open_log().watermark("orders", delay=5 * SECOND, by="producer")
        return None if found is None else (found - NOON) // SECOND

    bring(log, 0, 50, producer="nobody", sequence=0)
    assert level() is None
    one.join("orders")
    two.join("orders", NOON)
    assert level() is None, "one has brought nothing"
    bring(log, 0, 10, producer="one", sequence=0)
    assert level() == 0
    two.announce("orders", NOON + 7 * SECOND)
    assert level() == 5, "what it announced, or its largest event time less the delay, whichever is later"
    one.announce("orders", NOON + 20 * SECOND)
    assert level() == 7
    two.leave("orders")
    assert level() == 20
    two.join("orders")
    log.seal()
    assert level() == 20, "it never goes back"
    log.rest("orders", producers=["two"])
    one.announce("orders", NOON + 30 * SECOND)
    assert level() == 30
    bring(log, 0, 31, producer="two", sequence=0)
    assert level() == 30
    one.announce("orders", NOON + 40 * SECOND)
    bring(log, 0, 38, producer="two", sequence=1)
    assert level() == 33
    found = {each.name: each for each in log.describe("orders").producers}
    assert found["two"].largest_time == NOON + 38 * SECOND and found["two"].idle == frozenset()
    assert found["one"].announced == NOON + 40 * SECOND


def test_who_has_not_joined_cannot_announce_or_leave(log: Log) -> None:
    log.create_topic("orders", ORDERS, event_time="at")
    with refused("log/producer-nobody"):
        log.producer("one").leave("orders")
    log.producer("one").join("orders")
    with refused("log/producer-not-joined"):
        log.producer("on").announce("orders", NOON)
    with pytest.raises(LogError, match="does not exist"):
        log.producer("one").join("order")
    with pytest.raises(LogError, match="a producer needs a name"):
        log.producer("")


def test_marks_can_depend_on_an_epoch(log: Log) -> None:
    log.create_topic("orders", ORDERS, partitions=2, event_time="at")
    old = Epoch("owner", log.raise_epoch("owner"))
    log.raise_epoch("owner")
    with pytest.raises(ConditionFailed):
        log.rest("orders", partitions=[0], expect=[old])
    with pytest.raises(ConditionFailed):
        log.punctuate("orders", NOON, expect=[old])
    with pytest.raises(LogError, match="has no partition 2"):
        log.rest("orders", partitions=[2])


def test_several_topics_are_punctuated_in_one_frame_or_none(log: Log) -> None:
    for topic in ("orders", "visits"):
        log.create_topic(topic, ORDERS, event_time="at")
    old = Epoch("owner", log.raise_epoch("owner"))
    newest = Epoch("owner", log.raise_epoch("owner"))
    before = log.mark().next_frame
    with pytest.raises(ConditionFailed):
        log.punctuate(["orders", "visits"], NOON, expect=[old])
    assert [log.watermark(each) for each in ("orders", "visits")] == [None, None]
    log.punctuate(["orders", "visits"], NOON, expect=[newest])
    assert [log.watermark(each) for each in ("orders", "visits")] == [NOON, NOON]
    assert len([each for each in log.frames(before) if each.punctuation]) == 1


def test_implausible_event_times_move_no_watermark(open_log: Opener) -> None:
    now = int(NOON.timestamp() * 1_000_000)
    log = open_log(clock=lambda: now)
    log.create_topic("orders", ORDERS, partitions=2, event_time=EventTime("at", plausible=timedelta(seconds=60)))
    log.producer("one").join("orders")
    log.append("orders", [{"id": 1, "at": NOON + each * SECOND} for each in (5, 60, 61)], partition=0)
    assert log.describe("orders").partitions[0].largest_time == NOON + 60 * SECOND
    bring(log, 1, 1000, producer="one", sequence=0)
    assert log.describe("orders").partitions[1].largest_time is None
    assert log.watermark("orders", delay=SECOND) == NOON + 59 * SECOND
    assert log.watermark("orders", delay=SECOND, by="producer") is None
    log.punctuate("orders", NOON + 5000 * SECOND)
    assert log.watermark("orders", delay=SECOND) == NOON + 5000 * SECOND, "punctuation is believed"


def test_a_file_with_implausible_event_times_is_looked_through(log: Log) -> None:
    log.create_topic("orders", "id INT, at TIMESTAMP", event_time="at")
    path = log.staging_path()
    schema = pa.schema([("id", pa.int32()), ("at", pa.timestamp("us", "UTC"))])
    with pa.ipc.new_file(path, schema) as writer:
        for year in (2025, 3025):
            writer.write_batch(pa.record_batch([[1], [NOON.replace(year=year)]], schema=schema))
    log.append_files({("orders", 0): [path]})
    assert log.describe("orders").partitions[0].largest_time == NOON.replace(year=2025)


def test_event_times_that_could_not_be_corrected_are_counted(log: Log) -> None:
    time = EventTime("at", corrected=Correction("made", "sent", "got", timedelta(hours=1)))
    log.create_topic("readings", READINGS, event_time=time)
    log.append("readings", [{"made": NOON, "sent": NOON, "got": NOON + SECOND}, {"made": NOON}, {}])
    description = log.describe("readings")
    assert description.uncorrected == 2 and description.partitions[0].largest_time == NOON + SECOND
    log.seal()
    assert log.describe("readings").uncorrected == 2


def test_a_file_with_other_times_than_the_corrected_ones_is_refused(log: Log) -> None:
    time = EventTime("at", corrected=Correction("made", "sent", "got"))
    log.create_topic("readings", READINGS.removeprefix("id INT, "), event_time=time)
    zoned = pa.timestamp("us", "UTC")
    schema = pa.schema([(name, zoned) for name in ("made", "sent", "got", "at")])
    for right, path in ((True, log.staging_path()), (False, log.staging_path())):
        with pa.ipc.new_file(path, schema) as writer:
            times = [[NOON], [NOON], [NOON + SECOND], [NOON + SECOND if right else NOON]]
            writer.write_batch(pa.record_batch([pa.array(each, zoned) for each in times], schema=schema))
        if right:
            log.append_files({("readings", 0): [path]})
        else:
            with refused("log/file-not-corrected", file=path.name):
                log.append_files({("readings", 0): [path]})
    assert log.describe("readings").uncorrected == 0
