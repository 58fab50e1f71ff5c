"""Records of topics, as they stand in the log: which topics are shown, from where on, each record as JSON values."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Any, Literal

from penstock.errors import ServeError, did_you_mean
from penstock.log import Entry, Log, Place, Topic
from penstock.log.consumers.dead import dead_topic
from penstock.log.protocol import OrderedLog
from penstock.schema import Scalar
from penstock.serve.appending import takes_records
from penstock.serve.source import Served
from penstock.text import BASE64, Unfit, reader, writer
from penstock.views import current
from penstock.views.sinks import is_dead_topic

Role = Literal["source", "changes", "late", "letters"]
LATE = "-late"
LETTERS = "dead-letters"
PLACE = re.compile(r"([0-9]{1,15}):([0-9]{1,8})")


@dataclass(frozen=True)
class Seek:
    """Where to begin: at an offset (a negative one counts from the end), an append time, or where a page has ended;
    with none of them at the first record that is kept. In one partition, or in all.
    """

    limit: int
    offset: int | None = None
    time: str | None = None
    next: str | None = None
    partition: int | None = None

    def __post_init__(self) -> None:
        if sum(each is not None for each in (self.offset, self.time, self.next)) > 1:
            raise ServeError("records begin at one place only", hint="Give one of `from`, `time` and `next`.")


@dataclass(frozen=True)
class Page:
    """Records in the order of their places; `next` is where the following page begins."""

    entries: tuple[Entry, ...]
    next: str | None


def shown_topics(served: Served) -> dict[str, Role]:
    """The topics of a pipeline that can be looked into: those that it reads, those that it writes, and the dead letters
    of queues over them and of its sinks.
    """
    known = {topic.name for topic in served.log.topics()}
    found: dict[str, Role] = {
        name: "source" if takes_records(served, name) else _role(name) for name in sorted(served.topics & known)
    }
    lineage = current(served.log, served.pipeline.name)
    if lineage is not None:
        prefix = f"{lineage.producer.replace('/', '.')}."
        found |= {name: _role(name) for name in sorted(known) if name.startswith(prefix)}
    letters = {dead_topic(queue) for queue, topic in queues_over(served.log).items() if topic in found}
    letters |= {name for name in known if is_dead_topic(served.pipeline.name, name)}
    return found | dict.fromkeys(sorted(letters & known), "letters")


def _role(name: str) -> Role:
    """Names of views have no dash."""
    return "late" if name.endswith(LATE) else "letters" if name.endswith(f".{LETTERS}") else "changes"


def queues_over(log: OrderedLog) -> dict[str, str]:
    """The queues of a log in a folder, and the topic of each; Kafka has none of ours."""
    return {queue.name: queue.topic for queue in log.consumers.queues()} if isinstance(log, Log) else {}


def shown_topic(served: Served, name: str) -> Topic:
    known = shown_topics(served)
    if name not in known:
        raise ServeError(
            f'topic "{name}" is not one of pipeline "{served.pipeline.name}"',
            detail=f"There are {', '.join(known) or 'none'}.",
            hint=did_you_mean(name, known),
            status=404,
        )
    return served.log.topic(name)


def page(log: OrderedLog, topic: Topic, seek: Seek) -> Page:
    chosen = range(topic.partitions) if seek.partition is None else [seek.partition]
    if seek.offset is not None and seek.offset > 0 and len(chosen) > 1:
        raise ServeError(
            f'an offset of "{topic.name}" needs its partition', detail=f"The topic has {topic.partitions} partitions."
        )
    read = [log.read(topic.name, partition=part, start=_start(log, topic, seek, part)) for part in chosen]
    entries: Iterator[Entry] = merge(*read, key=lambda entry: int(entry.place))
    if seek.offset is not None and seek.offset < 0:
        return Page(tuple(entries)[-seek.limit :], None)
    found = tuple(islice(entries, seek.limit + 1))
    following = found[seek.limit].place if len(found) > seek.limit else None
    return Page(found[: seek.limit], None if following is None else place_text(following))


def _start(log: OrderedLog, topic: Topic, seek: Seek, partition: int) -> int | Place | datetime | None:
    if seek.time is not None:
        return _time(seek.time)
    if seek.next is not None:
        return _place(seek.next)
    if seek.offset is not None and seek.offset < 0 and partition < topic.partitions:
        at = log.describe(topic.name).partitions[partition]
        return max(at.begin, at.end + seek.offset)
    return seek.offset


def _time(text: str) -> datetime:
    try:
        found: datetime = reader(Scalar("TIMESTAMP"))(text)
    except Unfit as error:
        raise ServeError(f"{error}"[:200], hint=error.hint, status=422) from None
    return found


def _place(text: str) -> Place:
    found = PLACE.fullmatch(text)
    if found is None:
        raise ServeError("this is not where a page has ended", hint="Give what `next` said, as it is.")
    return Place(int(found[1]), int(found[2]))


def place_text(place: Place) -> str:
    return f"{place.frame}:{place.index}"


def record_fields(topic: Topic, entry: Entry) -> dict[str, Any]:
    time = writer(Scalar("TIMESTAMP"))
    return {
        "partition": entry.partition,
        "offset": entry.offset,
        "place": place_text(entry.place),
        "appended_at": time(entry.appended_at),
        "time": None if entry.time is None else time(entry.time),
        "key": _key(topic, entry),
        "values": _values(topic, entry.value),
        "deleted": entry.deleted,
        "replaces": _values(topic, entry.replaces),
        "headers": {name: _text(value) for name, value in entry.headers.items()},
    }


def _key(topic: Topic, entry: Entry) -> Any:
    if entry.key is None or isinstance(entry.key, bytes):
        return None if entry.key is None else _text(entry.key)
    values = dict(zip(topic.key, entry.key, strict=True))
    return {name: writer(topic.schema.column(name).type)(value) for name, value in values.items()}


def _values(topic: Topic, value: Mapping[str, Any] | bytes | None) -> Any:
    if value is None or isinstance(value, bytes):
        return None if value is None else _text(value)
    return {column.name: writer(column.type)(value.get(column.name)) for column in topic.schema.columns}


def _text(data: bytes) -> str | dict[str, str]:
    """Bytes as text where they are UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": BASE64.write(data)}
