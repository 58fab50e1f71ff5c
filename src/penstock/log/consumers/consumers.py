"""The readers of a log that it remembers: its groups and its queues."""

from collections.abc import Callable

from penstock.log.consumers import deliveries
from penstock.log.consumers.backlog import Reader, lowest, readers
from penstock.log.consumers.facts import Facts
from penstock.log.consumers.group import Group
from penstock.log.consumers.queue import Queue
from penstock.log.consumers.site import Site
from penstock.log.consumers.source import Source


class Consumers:
    """Of one open log. Nothing is opened, and no file made, before a group or a queue is used."""

    def __init__(self, source: Source, identity: str, clock: Callable[[], int]) -> None:
        self._facts = Facts(source.folder, identity)
        self._at = Site(source, self._facts, clock)

    def close(self) -> None:
        self._facts.close()

    def group(self, name: str) -> Group:
        return Group(self._at, name)

    def groups(self) -> list[Group]:
        """By name."""
        if not self._facts.exist:
            return []
        with self._facts.reading() as db:
            return [Group(self._at, name) for (name,) in db.execute("SELECT name FROM groups ORDER BY name")]

    def readers(self, topic: str) -> list[Reader]:
        """The groups and queues that read a topic, and how far each has come."""
        if not self._facts.exist:
            return []
        with self._facts.reading() as db:
            return readers(db, topic)

    def lowest(self, topic: str) -> dict[int, int]:
        """The offset before which no group and no queue needs anything any more, of each partition that anybody reads.
        What acknowledgements add is known a moment later: it is never too high.
        """
        if not self._facts.exist:
            return {}
        with self._facts.reading() as db:
            return lowest(db, topic)

    def excise(self, topic: str) -> None:
        """No reason for which a message of the topic was rejected is in the facts any more, nor left in their files."""
        if self._facts.exist:
            with self._facts.writing() as db:
                deliveries.withhold_reasons(db, topic)
            self._facts.rewrite()

    @property
    def version(self) -> object:
        """Another one whenever a group or a queue may have come further."""
        return self._facts.version if self._facts.exist else None

    def queue(self, name: str) -> Queue:
        return Queue(self._at, name)

    def queues(self) -> list[Queue]:
        """By name."""
        if not self._facts.exist:
            return []
        with self._facts.reading() as db:
            return [Queue(self._at, name) for (name,) in db.execute("SELECT name FROM queues ORDER BY name")]
