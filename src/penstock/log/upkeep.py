"""Upkeep: records go when somebody asks for it. In the background `Sealing` has the same done.

Each work has all closed stretches sealed first, and nobody else seals or rewrites meanwhile.
"""

from collections.abc import Sequence

from penstock.errors import LogError
from penstock.log.care import Care
from penstock.log.compaction import Compacted, Told
from penstock.log.excision import Excised, Sought
from penstock.log.expiry import Expired
from penstock.log.journal import Journal
from penstock.log.sealing import Sealing
from penstock.log.topic import Topic, not_compacted
from penstock.log.writer import Writer


class Upkeep:
    def __init__(self, writer: Writer, sealing: Sealing, care: Care) -> None:
        self._writer = writer
        self._sealing = sealing
        self._care = care

    def retain(self, topics: Sequence[Topic] | None) -> list[Expired]:
        names = None if topics is None else [topic.name for topic in topics]
        with self._sealing.alone() as journal:
            assert journal is not None
            self._care.before(journal, names)
            self._sealing.seal_all(journal)
            self._care.tidy_once(journal, lambda: False)
            return list(self._care.expire(journal, names))

    def compact(self, topics: Sequence[Topic], told: Told) -> list[Compacted]:
        for topic in topics:
            if not topic.key:
                raise not_compacted(topic)
        names = [topic.name for topic in topics]
        with self._sealing.alone() as journal:
            assert journal is not None
            self._care.close_stretch_with(journal, names)
            self._sealing.seal_all(journal)
            self._care.tidy_once(journal, lambda: False)
            return list(self._care.compact(journal, names, told=told))

    def excise(self, sought: Sought, digest: str, by: str) -> Excised:
        self._writer.roll()
        with self._sealing.alone() as journal:
            assert journal is not None
            self._seal_wholly(journal, [sought.topic.name])
            return self._care.excise(journal, sought, digest, by)

    def forget(self, topics: Sequence[Topic]) -> None:
        names = [topic.name for topic in topics]
        self._writer.roll()
        with self._sealing.alone() as journal:
            assert journal is not None
            self._seal_wholly(journal, names)
            self._care.forget(journal, names)

    def _seal_wholly(self, journal: Journal, topics: Sequence[str]) -> None:
        if self._sealing.seal_all(journal):
            raise LogError(
                f"records of {', '.join(topics)} cannot be taken out: a part of the log is damaged and not sealed",
                hint="penstock log check names it. Restore the file from a copy, then try again.",
            )
