"""Admission: records that anybody wrote to the topics of a log get their place in its one order.

One at a time admits, whoever has the transactional id: it reads all topics that are not the log's own, from where the
journal has them, and says in the journal, frame by frame, which offsets come next and which event times they span. So
all pipelines and every replay see the same cuts. The others look on, and take over when records wait for a while. Who
takes over has read the journal to its end before it goes on.
"""

import time
from collections.abc import Iterator
from threading import Event, Thread

from confluent_kafka import Consumer

from penstock.errors import LogError
from penstock.log.frame import Header
from penstock.log.kafka.admitting import Reading, Where
from penstock.log.kafka.appending import Appending
from penstock.log.kafka.client import Client
from penstock.log.kafka.facts import Facts
from penstock.log.kafka.journal import journal_message
from penstock.log.kafka.mirror import Mirror
from penstock.log.kafka.mirroring import Mirroring
from penstock.log.kafka.transaction import Again, Overtaken, Undecided, Writer
from penstock.log.topic import Topic

NAME = "admission"
"""The transactional id."""
PATIENCE_SECONDS = 1.0
"""So long records wait before somebody else admits them."""
LOOK_SECONDS = 0.1
POLL_SECONDS = 0.02
CHECK_SECONDS = 10.0
"""So often it is looked whether topics are what they were."""


class Admission:
    def __init__(
        self, client: Client, facts: Facts, appending: Appending, mirror: Mirror, mirroring: Mirroring
    ) -> None:
        self._client = client
        self._facts = facts
        self._mirror = mirror
        self._mirroring = mirroring
        self._writer: Writer = appending.writer(NAME)
        self._ending = Event()
        self._hurry = Event()
        self._checked: dict[Where, int] = {}
        self._failure: Exception | None = None
        self._own: dict[str, bool] = {}
        self._check_at = 0.0
        self._thread = Thread(target=self._run, name="penstock-admission", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ending.set()
        self._thread.join()

    def settle(self) -> None:
        """Returns when all records that are committed now are in the order."""
        pending = dict(self._behind(self._committed()))
        self._hurry.set()  # whoever waits for it does not wait for another to begin
        try:
            self._await(pending)
        finally:
            self._hurry.clear()

    def _await(self, pending: dict[Where, int]) -> None:
        """Until the journal has all records of these partitions before these ends."""
        seen: dict[Where, int] = {}
        while pending:
            self.check()
            self._ending.wait(POLL_SECONDS)
            known = self._admitted()
            for where, end in list(pending.items()):
                begin = known.get(where, 0)
                # Where it has not moved, what is left may be marks of transactions alone.
                if begin >= end or (seen.get(where) == begin and not self._has_records(where, begin, end)):
                    del pending[where]
                seen[where] = begin

    def check(self) -> None:
        """Raises what ended the thread."""
        self._mirroring.check()
        if self._failure is not None:
            raise self._failure

    # Looking on

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                self._check_topics()
                if self._is_needed():
                    self._admit()
                self._ending.wait(LOOK_SECONDS)
        except Exception as error:
            self._failure = error

    def _is_needed(self) -> bool:
        """Whether records wait that nobody admits."""
        waiting = set(self._behind(self._committed()))
        since = time.monotonic()
        while waiting and not self._ending.is_set():
            if self._hurry.is_set() or time.monotonic() - since > PATIENCE_SECONDS:
                return True
            self._ending.wait(LOOK_SECONDS)
            still = {where for where, end in self._behind(dict(waiting))}
            waiting = {each for each in waiting if each[0] in still}
        return False

    def _behind(self, ends: dict[Where, int]) -> Iterator[tuple[Where, int]]:
        """Partitions that have records before these ends which the journal does not have; with the ends."""
        known = self._admitted()
        for where, end in ends.items():
            if end < known.get(where, 0):
                self._check_end(where, known[where])
            begin = max(known.get(where, 0), self._checked.get(where, 0))
            if begin < end:
                if self._has_records(where, begin, end):
                    yield where, end
                else:  # marks of transactions take offsets too
                    self._checked[where] = end

    def _check_end(self, where: Where, admitted: int) -> None:
        """What is in the order is there still. The end is asked for again: the order may have gone on meanwhile."""
        topic, partition = where
        [end] = self._client.ends(self._facts.prefix + topic, [partition])
        if end < admitted:
            raise changed(
                topic,
                f"Partition {partition} ends at offset {end}, and the order of the log has it up to {admitted}: it has "
                "been made anew, or has lost its end.",
            )

    def _check_topics(self) -> None:
        """The topics are those that were declared. Brokers do not tell if somebody makes them otherwise."""
        if time.monotonic() < self._check_at:
            return
        topics = self._topics()
        identities = self._facts.identities()
        for topic in topics:
            identity, partitions = self._client.described(self._facts.prefix + topic.name)
            if identities.get(topic.name, identity) != identity:
                raise changed(
                    topic.name, "It has been removed from Kafka and made anew: its offsets mean other records."
                )
            if partitions != topic.partitions:
                raise changed(
                    topic.name, f"It has {partitions} partitions now, and was declared with {topic.partitions}."
                )
        self._check_at = time.monotonic() + CHECK_SECONDS

    def _has_records(self, where: Where, begin: int, end: int) -> bool:
        topic, partition = where
        return any(True for _ in self._client.messages(self._facts.prefix + topic, partition, begin, end))

    def _committed(self) -> dict[Where, int]:
        """Where the committed records of all topics end that are to be admitted."""
        prefix = self._facts.prefix
        names = {prefix + topic.name: topic.partitions for topic in self._topics()}
        return {(name.removeprefix(prefix), each): end for (name, each), end in self._client.all_ends(names).items()}

    def _admitted(self) -> dict[Where, int]:
        """Where the journal's records of all partitions end."""
        return self._mirror.ask(
            lambda catalog: {
                (name, partition): end
                for name, standing in catalog.standings.items()
                for partition, end in enumerate(standing.ends)
            }
        )

    def _topics(self) -> list[Topic]:
        """The topics that others may write to."""
        found = self._mirror.ask(lambda catalog: list(catalog.topics.values()))
        if any(topic.name not in self._own for topic in found):
            self._facts.topics()
            own = self._facts.own()
            self._own = {topic.name: topic.name in own for topic in found}
        return [topic for topic in found if not self._own[topic.name]]

    # Admitting

    def _admit(self) -> None:
        """Admits until another takes over."""
        with self._writer.lock:
            try:
                self._writer.take_over()
                self._mirroring.wait(self._client.settled_end(self._facts.journal, 0))
                with self._client.exact_consumer() as consumer:
                    self._admitting(consumer)
            except (Overtaken, Again, Undecided):  # what was said is read in the journal, or was not said
                self._writer.let_go()

    def _admitting(self, consumer: Consumer) -> None:
        reading = Reading(self._client, consumer, self._facts.prefix)
        while not self._ending.is_set():
            begins = self._admitted()
            self._check_topics()
            reading.add({topic.name: topic for topic in self._topics()}, begins)
            for blocks in reading.frames():
                said = journal_message(self._facts.prefix, Header(0, 0, 0, tuple(blocks)))
                [(_, landed)] = self._writer.commit((), lambda _, said=said: [said]).facts  # type: ignore[misc]
                self._mirroring.wait(landed.offset + 1)


def changed(topic: str, detail: str) -> LogError:
    return LogError(
        f'topic "{topic}" is not what it was when it was declared',
        detail=detail,
        hint="Records would be passed over, or counted twice. Give the records a topic of another name.",
    )
