"""A topic of Kafka as a sink: it holds the changes of a view, each once, all rows of the view at its beginning.

Changes and the place up to which they go are one transaction of Kafka (the commit of a producer, with its note): who
dies goes on behind it. Who begins takes over from whoever writes there still, whose next append is refused. Only what
is committed is the view's: read the topic with `read_committed`. Needs the extra `kafka`.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import dropwhile
from typing import Any

from penstock.errors import ViewError
from penstock.log import Place, Record
from penstock.log.kafka import KafkaLog
from penstock.log.records import Epoch
from penstock.views.changelog import ViewChanges
from penstock.views.lineage import current
from penstock.views.sinks.memory import Notes
from penstock.views.sinks.news import News, Source, news_of
from penstock.views.step import View
from penstock.views.steps import grouped

POLL_SECONDS = 0.01
AT_ONCE = 5_000
PATIENCE = timedelta(seconds=10)
"""For so long brokers are waited for; then that is told, and tried again."""
Stop = Callable[[], bool]


@dataclass(frozen=True)
class Reached:
    """How far the topic has come: nothing before `begin` is in it, everything before `place` that came since is."""

    begin: int
    place: Place


class TopicSink:
    """Belongs to one thread."""

    def __init__(self, source: Source, servers: str, topic: str, settings: Mapping[str, Any], notes: Notes) -> None:
        self._source = source
        self._notes = notes
        self._servers = servers
        self._topic = topic
        self._settings = settings
        self._declared: View | None = None
        self._name = f"{source.pipeline}.{source.view} to {topic}"

    def run(self, stop: Stop | None, well: Callable[[], None] = lambda: None) -> None:
        """Appends what comes, until `stop` says so; without it, what is there now."""
        try:
            self._run(stop, well)
        except Exception:
            self._notes.failed()
            raise

    def _run(self, stop: Stop | None, well: Callable[[], None]) -> None:
        settings = dict(self._settings)
        with KafkaLog.open(self._servers, settings=settings, patience=PATIENCE, say=lambda _: None) as target:
            epoch = Epoch(self._name, target.raise_epoch(self._name))
            reached = self._reached(target)
            source, frame = self._source, reached.place.frame
            whole = frame == reached.begin
            reading = ViewChanges(source.log, source.pipeline, source.view, frame, whole=whole)
            is_noted = False
            while stop is None or not stop():
                fresh = dropwhile(lambda change: change.place < reached.place, reading.fresh())
                for group in grouped(news_of(fresh), lambda _: 1, AT_ONCE):
                    self._append(target, group, reached.begin, epoch)
                    self._notes.reached(group[-1].goes_on)
                    is_noted = False
                    well()
                    if stop is not None and stop():
                        return
                if not is_noted:  # all of the last frame, not only up to a place in it
                    self._notes.reached(Place(reading.frame))
                    is_noted = True
                if stop is None:
                    return
                time.sleep(POLL_SECONDS)

    def _reached(self, target: KafkaLog) -> Reached:
        log, last = self._source.log, target.last(self._name)
        if last is None:
            lineage = current(log, self._source.pipeline)
            begin = lineage.frame if lineage is not None else 0
            return Reached(begin, Place(begin))
        note = last.note
        if note["log"] != log.identity:
            raise ViewError(
                f'topic "{self._topic}" at {self._servers} has changes from another log',
                detail=f"They are from log {note['log']}; this one is {log.identity}.",
                hint="Declare another topic.",
            )
        reached = Reached(note["begin"], Place(*note["place"]))
        self._check_kept(reached.place)
        return reached

    def _check_kept(self, place: Place) -> None:
        """In the middle of a frame one can go on only where the frame is as it was."""
        lineage = current(self._source.log, self._source.pipeline)
        view = next((each for each in lineage.views if each.name == self._source.view), None) if lineage else None
        if lineage is None or view is None or place.index == 0:
            return
        if self._source.log.compacted(lineage.topic(view)) > place.frame:
            raise ViewError(
                f'topic "{self._topic}" at {self._servers} cannot go on: changes of view "{view.name}" are compacted',
                detail=f"It has a part of what happened in frame {place.frame}.",
                hint="Declare another topic: it begins with all rows of the view.",
            )

    def _append(self, target: KafkaLog, news: list[News], begin: int, epoch: Epoch) -> None:
        view, goes_on = news[-1].view, news[-1].goes_on
        if view != self._declared:
            self._declare(target, view)
        target.append_all(
            {self._topic: list(_records(view, news))},
            producer=self._name,
            sequence=int(goes_on),
            expect=[epoch],
            note={"log": self._source.log.identity, "begin": begin, "place": [goes_on.frame, goes_on.index]},
        )

    def _declare(self, target: KafkaLog, view: View) -> None:
        """Columns may have come; every other change is refused."""
        known = next((each for each in target.topics() if each.name == self._topic), None)
        if known is None:
            partitions = target.client.partitions(self._topic) or 1
            target.create_topic(self._topic, view.schema, key=view.key, partitions=partitions)
        elif known.key != view.key:
            raise ViewError(
                f'topic "{self._topic}" at {self._servers} has another key than view "{view.name}"',
                detail=f"It has {', '.join(known.key) or 'none'}, the view {', '.join(view.key) or 'none'}.",
                hint="Declare another topic.",
            )
        elif known.schema != view.schema:
            target.change_schema(self._topic, view.schema)
        self._declared = view


def _records(view: View, news: Iterable[News]) -> Iterator[Record]:
    for each in news:
        if each.new is not None:
            yield Record(each.new, replaces=each.old if view.key else None)
        elif each.old is not None and view.key:
            yield Record({name: each.old[name] for name in view.key}, deleted=True, replaces=each.old)
        else:
            yield Record(each.old, deleted=True)
