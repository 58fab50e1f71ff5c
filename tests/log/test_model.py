"""Random stories: whatever is done to a log, in any order and by any handle, it holds what plain lists would."""

import operator
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.errors import ConditionFailed, RecordsGone, SchemaError
from penstock.log import Appended, EndOffset, Epoch, Limits, Log, Place
from penstock.log.catalog import Catalog
from penstock.log.journal import Journal
from penstock.log.records import instant
from penstock.log.retention import FOREVER, Retention
from tests.effort import examples
from tests.log.disks import QuickDisk
from tests.log.test_places import staged

LIMITS = [Limits(), Limits(stretch_frames=3), Limits(stretch_bytes=1), Limits(stretch_bytes=1500, stretch_frames=5)]
TOPICS = ("one", "three")
counts = st.integers(1, 4)
topics = st.sampled_from(TOPICS)
who = st.integers(0, 1)

Row = dict[str, Any]
Found = tuple[int, int, int, int, int, Row]
"""Partition, offset, frame, index, append time and row of a record."""


class Story(RuleBasedStateMachine):
    """The log under test, open twice, and beside it `records`: what was ever in it, in the order of places; what is
    kept of it lies at and after `begins`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.space = TemporaryDirectory()
        self.folder = Path(self.space.name) / "log"
        self.logs: list[Log] = []
        self.columns = dict.fromkeys(TOPICS, 1)
        self.records: dict[str, list[Found]] = {topic: [] for topic in TOPICS}
        self.begins = {"one": [0], "three": [0, 0, 0]}
        self.sequences: dict[int, Appended] = {}
        self.epoch = self.frame = self.last_id = 0
        self.now = self.latest = 1000

    @initialize(limits=st.sampled_from(LIMITS))
    def begin(self, limits: Limits) -> None:
        self.limits = limits
        self.logs = [self.opened(), self.opened()]
        self.logs[0].create_topic("one", "id INT NOT NULL")
        self.logs[1].create_topic("three", "id INT NOT NULL", key="id", partitions=3)
        self.frame = 2

    def teardown(self) -> None:
        for log in self.logs:
            log.close()
        self.space.cleanup()

    def opened(self) -> Log:
        return Log.open(self.folder, disk=QuickDisk(), limits=self.limits, clock=lambda: self.now)

    # What is done

    def rows(self, topic: str, count: int) -> list[Row]:
        self.last_id += count
        more = {f"c{at}": self.last_id for at in range(1, self.columns[topic])}
        return [{"id": each, **more} for each in range(self.last_id - count, self.last_id)]

    def take_in(self, done: Appended, rows: dict[str, list[Row]]) -> None:
        """Adds to the model what the log says that it has appended: every row once, where the answer says."""
        self.latest = max(self.latest, self.now)
        assert (done.frame, done.appended_at, done.repeated) == (self.frame, instant(self.latest), False)
        self.frame += 1
        index = 0
        for topic, mine in rows.items():
            spans = [span for span in done.spans if span.topic == topic]
            assert sum(span.count for span in spans) == len(mine)
            for span in spans:
                assert span.base == self.end(topic, span.partition)
                places = range(index, index + span.count)
                here = self.chosen(topic, mine, span.partition, span.count)
                for offset, (at, row) in enumerate(zip(places, here, strict=True), span.base):
                    self.records[topic].append((span.partition, offset, done.frame, at, self.latest, row))
                index += span.count

    def chosen(self, topic: str, rows: list[Row], partition: int, count: int) -> list[Row]:
        """The rows that went to a partition: all of them, or those whose key always goes there."""
        if count == len(rows):
            return rows
        log = self.logs[0]
        there = {e.value["id"] for e in log.read(topic, partition=partition)}  # type: ignore[index,call-overload]
        return [row for row in rows if row["id"] in there]

    def end(self, topic: str, partition: int) -> int:
        return sum(found[0] == partition for found in self.records[topic])

    @rule(who=who, topic=topics, count=counts)
    def append(self, who: int, topic: str, count: int) -> None:
        rows = self.rows(topic, count)
        self.take_in(self.logs[who].append(topic, rows), {topic: rows})

    @rule(who=who, one=counts, three=counts)
    def append_to_both(self, who: int, one: int, three: int) -> None:
        rows = {"one": self.rows("one", one), "three": self.rows("three", three)}
        self.take_in(self.logs[who].append_all(rows), rows)

    @rule(who=who, count=counts, partition=st.integers(0, 2))
    def append_a_file(self, who: int, count: int, partition: int) -> None:
        rows = self.rows("three", count)
        log = self.logs[who]
        files = {("three", partition): [staged(log, "three", rows[:1], rows[1:])]}
        self.take_in(log.append_files(files), {"three": rows})

    @rule(who=who, topic=topics, count=counts, skip=st.integers(1, 2))
    def append_under_a_sequence(self, who: int, topic: str, count: int, skip: int) -> None:
        rows = self.rows(topic, count)
        sequence = max(self.sequences, default=0) + skip
        self.sequences[sequence] = self.logs[who].append(topic, rows, producer="p", sequence=sequence)
        self.take_in(self.sequences[sequence], {topic: rows})

    @precondition(lambda self: self.sequences)
    @rule(who=who, which=st.integers(0, 100))
    def repeat_a_sequence(self, who: int, which: int) -> None:
        sequence = sorted(self.sequences)[which % len(self.sequences)]
        again = self.logs[who].append("one", [{"id": -1}], producer="p", sequence=sequence)
        first = self.sequences[sequence]
        assert (again.frame, again.spans, again.repeated) == (first.frame, first.spans, True)

    @rule(who=who, topic=topics, off=st.integers(0, 1))
    def append_on_conditions(self, who: int, topic: str, off: int) -> None:
        rows = self.rows(topic, 1)
        expect: list[EndOffset | Epoch] = [EndOffset(topic, 0, self.end(topic, 0)), Epoch("e", self.epoch - off)]
        if off:
            with pytest.raises(ConditionFailed):
                self.logs[who].append(topic, rows, expect=expect)
        else:
            self.take_in(self.logs[who].append(topic, rows, expect=expect), {topic: rows})

    @rule(who=who, topic=topics)
    def append_a_misfit(self, who: int, topic: str) -> None:
        with pytest.raises(SchemaError):
            self.logs[who].append_all({"one": [{"id": 1}], "three": [{"id": 1}, {"id": "x"}]})

    @rule(who=who)
    def raise_the_epoch(self, who: int) -> None:
        self.epoch += 1
        self.pass_time()
        assert self.logs[who].raise_epoch("e") == self.epoch

    @rule(who=who, topic=topics)
    def add_a_column(self, who: int, topic: str) -> None:
        self.columns[topic] += 1
        self.pass_time()
        more = "".join(f", c{at} INT" for at in range(1, self.columns[topic]))
        self.logs[who].change_schema(topic, f"id INT NOT NULL{more}")

    def pass_time(self) -> None:
        """A frame without records."""
        self.frame += 1
        self.latest = max(self.latest, self.now)

    @rule(by=st.integers(-5, 5))
    def turn_the_clock(self, by: int) -> None:
        self.now += by

    @rule(who=who)
    def seal(self, who: int) -> None:
        assert self.logs[who].seal() == 0

    @rule(who=who, topic=topics, age=st.integers(0, 10))
    def let_old_records_go(self, who: int, topic: str, age: int) -> None:
        gone = self.let_go(who, topic, Retention(age=timedelta(microseconds=age)))
        assert all(found[4] < self.now - age for found in gone)

    @rule(who=who, topic=topics, most=st.integers(0, 3_000))
    def let_go_what_is_too_much(self, who: int, topic: str, most: int) -> None:
        self.let_go(who, topic, Retention(bytes=most))

    def let_go(self, who: int, topic: str, retention: Retention) -> list[Found]:
        """The records that went."""
        log, before = self.logs[who], self.want(topic)
        log.change_retention(topic, retention)
        log.retain()
        log.change_retention(topic, FOREVER)
        begins = list(log.begins(topic))
        assert all(map(operator.le, self.begins[topic], begins)) and all(map(operator.le, begins, log.ends(topic)))
        self.begins[topic], self.frame = begins, log.mark().next_frame
        self.latest = max(self.latest, self.now)
        kept = self.want(topic)
        return [found for found in before if found not in kept]

    @rule(who=who)
    def open_again(self, who: int) -> None:
        self.logs[who].close()
        self.logs[who] = self.opened()

    # What must hold

    def read(self, who: int, topic: str, **where: Any) -> list[Found]:
        return [
            (e.partition, e.offset, e.place.frame, e.place.index, round(e.appended_at.timestamp() * 1e6), dict(e.value))  # type: ignore[arg-type]
            for e in self.logs[who].read(topic, **where)
        ]

    def want(self, topic: str) -> list[Found]:
        names = ["id", *(f"c{at}" for at in range(1, self.columns[topic]))]
        kept = [found for found in self.records[topic] if found[1] >= self.begins[topic][found[0]]]
        return [(*found[:5], {name: found[5].get(name) for name in names}) for found in kept]

    @rule(who=who, topic=topics)
    def read_everything(self, who: int, topic: str) -> None:
        assert self.read(who, topic) == self.want(topic)

    @rule(who=who, partition=st.integers(0, 2), start=st.integers(0, 20), length=st.integers(0, 20))
    def read_from_an_offset(self, who: int, partition: int, start: int, length: int) -> None:
        end = start + length
        if start < self.begins["three"][partition] and start < min(end, self.end("three", partition)):
            with pytest.raises(RecordsGone):
                self.read(who, "three", partition=partition, start=start, end=end)
            return
        want = [found for found in self.want("three") if found[0] == partition and start <= found[1] < end]
        assert self.read(who, "three", partition=partition, start=start, end=end) == want

    @rule(who=who, topic=topics, frame=st.integers(0, 60), index=st.integers(0, 5))
    def read_from_a_place(self, who: int, topic: str, frame: int, index: int) -> None:
        want = self.want(topic)
        after = [found for found in self.records[topic] if (found[2], found[3]) >= (frame, index)]
        kept = [found for found in want if (found[2], found[3]) >= (frame, index)]
        assert self.read(who, topic, end=Place(frame, index)) == want[: len(want) - len(kept)]
        self.read_or_be_told(who, topic, after, kept, start=Place(frame, index))

    def read_or_be_told(self, who: int, topic: str, asked: list[Found], kept: list[Found], **where: Any) -> None:
        """All that was asked for is read, or none of it."""
        if len(asked) == len(kept):
            assert self.read(who, topic, **where) == kept
        else:
            with pytest.raises(RecordsGone):
                self.read(who, topic, **where)

    @rule(who=who, topic=topics, by=st.integers(-10, 10))
    def read_from_a_time(self, who: int, topic: str, by: int) -> None:
        at = self.now + by
        asked = [found for found in self.records[topic] if found[4] >= at]
        self.read_or_be_told(who, topic, asked, [f for f in self.want(topic) if f[4] >= at], start=instant(at))

    @invariant()
    def ends_are_known_to_every_handle(self) -> None:
        for log in self.logs:
            assert log.ends("one") == (self.end("one", 0),)
            assert log.ends("three") == tuple(self.end("three", p) for p in range(3))

    @rule(who=who)
    def look_at_the_frames(self, who: int) -> None:
        headers = list(self.logs[who].frames())
        assert [header.frame for header in headers] == list(range(self.frame))
        assert [header.at for header in headers] == sorted(header.at for header in headers)
        assert not any(finding.damage for finding in self.logs[who].check())

    @rule()
    def replay_the_frames(self) -> None:
        """The catalog follows from the frames alone; preludes only keep it at hand."""
        journal, replayed = Journal(self.folder), Catalog()
        for header in journal.headers():
            replayed.apply(header)
        assert journal.catalog_after(journal.firsts()[-1]) == replayed


TestStory = Story.TestCase
TestStory.settings = examples(12, steps=25)
