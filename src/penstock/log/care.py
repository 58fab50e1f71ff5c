"""Care: what happens to records that are there. They expire, and topics are compacted.

Runs under the sealers' lock, beside writers and readers: in the background after sealing, or when it is asked for.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from penstock.log.catalog import Catalog
from penstock.log.compaction import LAG, Allowed, Compacted, Plan, Told, compact, is_new, is_worthwhile, planned
from penstock.log.disk import Disk
from penstock.log.draft import Draft
from penstock.log.excision import Excised, Sought, clear_aside, excise
from penstock.log.expiry import Expired, Needs, expired, is_ripe, needed
from penstock.log.journal import Journal
from penstock.log.needs import pipelines_need
from penstock.log.sealing import Stop
from penstock.log.tidying import tidy
from penstock.log.topic import Topic
from penstock.log.writer import Writer


def is_cared_for(catalog: Catalog) -> bool:
    """Whether there is a topic whose records are not kept for ever."""
    return any(topic.retention.ends or topic.retention.compacted for topic in catalog.topics.values())


def _all_topics(catalog: Catalog) -> list[Topic]:
    return list(catalog.topics.values())


class Care:
    def __init__(self, writer: Writer, disk: Disk, clock: Callable[[], int], needs: Sequence[Needs]) -> None:
        self._writer = writer
        self._disk = disk
        self._clock = clock
        self._needs = needs
        self._tidied = False

    def before(self, journal: Journal, topics: Sequence[str] | None = None) -> None:
        """Closes the open stretch where it holds records that are to go."""
        catalog, now = journal.catalog_now(), self._clock()
        chosen = [topic for topic in catalog.topics.values() if topics is None or topic.name in topics]
        if any(topic.retention.ends and is_ripe(journal, catalog, topic, now) for topic in chosen):
            self._writer.roll()

    def close_stretch_with(self, journal: Journal, topics: Sequence[str]) -> None:
        """Closes the open stretch if it holds records of these topics."""
        headers = [found.header for found in journal.stretch(journal.mark().stretch).frames]
        if any(header.blocks_of(topic) for header in headers for topic in topics):
            self._writer.roll()

    def run(self, journal: Journal, stop: Stop) -> None:
        """All topics, each as its retention says."""
        if not self._writer.ask(is_cared_for):
            return
        self.tidy_once(journal, stop)
        for _ in self.expire(journal, stop=stop):
            pass
        topics = [topic.name for topic in self._writer.ask(_all_topics) if topic.retention.compacted]
        for _ in self.compact(journal, topics, stop=stop, in_background=True):
            pass

    def tidy_once(self, journal: Journal, stop: Stop) -> None:
        """Removes what killed runs have left."""
        if self._tidied:
            return
        catalog = journal.catalog_now()
        for first in journal.sealed():
            if stop():
                return
            tidy(journal, catalog, first, self._disk)
        self._tidied = True

    def expire(
        self, journal: Journal, topics: Sequence[str] | None = None, stop: Stop = lambda: False
    ) -> Iterator[Expired]:
        """Lets go what is to go of these topics, or of all; what went of each of which something did."""
        catalog = journal.catalog_now()
        for topic in catalog.topics.values():
            if stop() or not topic.retention.ends or (topics is not None and topic.name not in topics):
                continue
            found = expired(journal, catalog, topic, self._clock(), self.needs(journal, catalog))
            if found.stretches:
                self._let_go(journal, found)
                yield found

    def compact(
        self,
        journal: Journal,
        topics: Sequence[str],
        *,
        told: Told = lambda _: None,
        stop: Stop = lambda: False,
        in_background: bool = False,
    ) -> Iterator[Compacted]:
        """Compacts these topics as far as can be; what was done to each to which something was."""
        for name in topics:
            catalog = journal.catalog_now()
            plan = self._plan(journal, catalog, catalog.topic(name), LAG if in_background else timedelta(0))
            if not is_new(catalog, plan) or (in_background and not is_worthwhile(journal, catalog, plan)):
                continue
            self._say({"compacted": {"topic": name, "below": plan.below, "deletions": plan.deletions}})
            done = compact(journal, journal.catalog_now(), plan, self._disk, told=told, stop=stop)
            if done is not None:
                self._say({"compacted": {"topic": name, "done": plan.below}})
                yield done

    def excise(self, journal: Journal, sought: Sought, hash_: str, by: str) -> Excised:
        """Takes all such records out of the sealed files, and out of what lies beside them."""
        catalog = journal.catalog_now()
        said = {"topic": sought.topic.name, "columns": list(sought.values), "hash": hash_, "by": by}
        self._say({"excision": said})
        for first in journal.sealed():
            tidy(journal, catalog, first, self._disk)
        gone = sum(excise(journal, catalog, sought, self._disk))
        clear_aside(journal, sought, self._disk)
        self._say({"excised": said | {"records": gone}})
        return Excised(sought.topic.name, hash_, gone)

    def forget(self, journal: Journal, topics: Sequence[str]) -> None:
        """Lets go all records of these topics that are sealed."""
        for name in topics:
            catalog = journal.catalog_now()
            ends = journal.catalog_before(journal.mark().stretch).ends(name)
            with_files = [f for f in journal.sealed() if any(e["topic"] == name for e in journal.stretch(f).files)]
            self._let_go(
                journal, Expired(name, tuple(ends), sum(ends) - sum(catalog.begins(name)), 0, tuple(with_files))
            )

    def _plan(self, journal: Journal, catalog: Catalog, topic: Topic, lag: timedelta) -> Plan:
        pipelines, *others = self.needs(journal, catalog)
        all_read = needed([pipelines, *others], topic.name)
        within = all_read if topic.retention.unread else needed([pipelines], topic.name)
        return planned(journal, catalog, topic, self._clock(), Allowed(within, all_read, lag))

    def _say(self, control: Mapping[str, Any]) -> None:
        self._writer.commit(Draft(control=lambda _: [control]))

    def needs(self, journal: Journal, catalog: Catalog) -> list[Needs]:
        """What the pipelines of this log need, and what others said that they do."""
        return [lambda topic: pipelines_need(journal, catalog, topic), *self._needs]

    def _let_go(self, journal: Journal, found: Expired) -> None:
        self._say({"begins": {"topic": found.topic, "offsets": list(found.begins)}})
        catalog = journal.catalog_now()
        for first in found.stretches:
            tidy(journal, catalog, first, self._disk)
