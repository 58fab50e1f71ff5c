"""Reporting: how far readers of the order have come, told to Kafka, whose own tools then show the lag of each.

A reader is a group without members; its offsets are written beside its work, the newest only. What cannot be written is
told with the next; nobody reads from there.
"""

from collections.abc import Collection, Mapping
from contextlib import suppress
from threading import Condition, Thread

from confluent_kafka import Consumer, KafkaException, TopicPartition

from penstock.log.journal import Journal
from penstock.log.kafka.client import Client

Ends = dict[tuple[str, int], int]
"""Topic and partition, and the offset that is read next."""


class Reporting:
    def __init__(self, client: Client, journal: Journal, prefix: str) -> None:
        self._client = client
        self._journal = journal
        self._prefix = prefix
        self._read: dict[str, tuple[int, Ends]] = {}
        self._told: dict[str, Ends] = {}
        self._news = Condition()
        self._ending = False
        self._thread: Thread | None = None

    def close(self) -> None:
        """Tells what is left to tell, if somebody hears it."""
        with self._news:
            self._ending = True
            self._news.notify_all()
        if self._thread is not None:
            self._thread.join()

    def report(self, reader: str, topics: Collection[str], frame: int) -> None:
        """The reader has read all frames of these topics before this one."""
        ends = {where: end for where, end in self._ends(reader, frame).items() if where[0] in topics}
        with self._news:
            self._told[reader] = ends
            self._news.notify_all()
            if self._thread is None:
                self._thread = Thread(target=self._run, name="penstock-lag", daemon=True)
                self._thread.start()

    def _ends(self, reader: str, frame: int) -> Ends:
        first = self._journal.stretch_of(frame) or 0
        start, ends = self._read.get(reader, (-1, {}))
        if start < first or start > frame:
            standings = self._journal.catalog_before(first).standings
            ends = {(name, at): end for name, each in standings.items() for at, end in enumerate(each.ends)}
            start = first
        for header in self._journal.headers(start):
            if header.frame >= frame:
                break
            ends = ends | {(block.topic, block.partition): block.end for block in header.blocks}
        self._read[reader] = (frame, ends)
        return ends

    def _run(self) -> None:
        consumers: dict[str, Consumer] = {}
        while True:
            with self._news:
                self._news.wait_for(lambda: self._ending or self._told)
                told, self._told = self._told, {}
                ending = self._ending
            for reader, ends in told.items():
                if reader not in consumers:
                    consumers[reader] = self._client.member(f"{self._prefix}penstock.{reader}")
                self._commit(consumers[reader], ends)
            if ending:
                for consumer in consumers.values():
                    consumer.close()
                return

    def _commit(self, consumer: Consumer, ends: Mapping[tuple[str, int], int]) -> None:
        offsets = [TopicPartition(self._prefix + topic, at, end) for (topic, at), end in ends.items() if end > 0]
        if offsets:
            with suppress(KafkaException):  # the next batch tells more
                consumer.commit(offsets=offsets, asynchronous=False)
