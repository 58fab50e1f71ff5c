"""Dead letters: messages that a queue gives up, in a topic of their own, and back.

A dead letter has the columns of the message, and in its headers where that stands and why it died. It is in the topic
exactly once, whoever dies when: letters are appended under the queue's name and a sequence, with a note of which they
are, inside of the transaction that takes the messages out of the queue. If that transaction was lost, the next one
finds its letters in the note of the last append.
"""

from collections.abc import Sequence

import apsw

from penstock.errors import LogError
from penstock.log.consumers import acks, deliveries
from penstock.log.consumers.deliveries import Declared, Doomed
from penstock.log.consumers.site import Site
from penstock.log.consumers.source import Source
from penstock.log.records import Entry, Record
from penstock.log.topic import Topic

AT_ONCE = 200
HEADERS = "penstock."


def dead_topic(queue: str) -> str:
    return f"{queue}.dead-letters"


def ensure_dead_topic(source: Source, queue: str, topic: Topic) -> None:
    """The topic of dead letters is there, with the columns that the queue's topic has by now."""
    name = dead_topic(queue)
    found = next((each for each in source.topics() if each.name == name), None)
    if found is None:
        source.create_topic(name, None if topic.raw else topic.schema, key=() if topic.raw else topic.key)
    elif found.raw != topic.raw or found.key != topic.key:
        raise LogError(
            f'topic "{name}" cannot hold the dead letters of queue "{queue}"',
            detail=f'It is not declared as "{topic.name}" is.',
            hint="Choose another name for the queue.",
        )
    elif found.schema != topic.schema:
        source.change_schema(name, topic.schema)


def bury(at: Site, queue: Declared) -> int:
    """Moves what is doomed to the dead letters; how many were moved. What retention has taken cannot be: whoever takes
    messages is told, or skips it, like any other.
    """
    moved = 0
    while True:
        now = at.clock()  # looked at once: what was acknowledged before it is not doomed by it
        with at.facts.writing() as db:
            acks.take_in_late(db, at.source.folder, queue.name, now)
            found = deliveries.doomed(db, queue, now=now, begins=at.source.begins(queue.topic), limit=AT_ONCE)
            if not found:
                return moved
            _append(at.source, queue, found)
            deliveries.forget(db, queue.name, [(each.partition, each.offset) for each in found])
        moved += len(found)


def _append(source: Source, queue: Declared, doomed: Sequence[Doomed]) -> None:
    producer = f"queue {queue.name}"
    last = source.last(producer)
    there = {tuple(each) for each in last.note.get("dead", ())} if last else set()
    fresh = [each for each in doomed if (each.partition, each.offset, each.life) not in there]
    if not fresh:
        return
    ensure_dead_topic(source, queue.name, source.topic(queue.topic))
    source.append_all(
        {dead_topic(queue.name): [letter for each in fresh for letter in _letters(source, queue, each)]},
        producer=producer,
        sequence=0 if last is None or last.sequence is None else last.sequence + 1,
        note={"dead": [[each.partition, each.offset, each.life] for each in fresh]},
    )


def _letters(source: Source, queue: Declared, doomed: Doomed) -> list[Record]:
    """One, unless compaction has taken the message."""
    start, end = doomed.offset, doomed.offset + 1
    found = source.read(queue.topic, partition=doomed.partition, start=start, end=end)
    return [_letter(entry, queue, doomed, raw=source.topic(queue.topic).raw) for entry in found]


def _letter(entry: Entry, queue: Declared, doomed: Doomed, *, raw: bool) -> Record:
    told = {
        "queue": queue.name,
        "topic": queue.topic,
        "partition": doomed.partition,
        "offset": doomed.offset,
        "deliveries": doomed.delivered,
        "reason": doomed.reason,
    }
    headers = dict(entry.headers) | {HEADERS + name: str(value).encode() for name, value in told.items()}
    return Record(
        entry.value,
        key=entry.key if isinstance(entry.key, bytes) else None,
        time=entry.time if raw else None,
        headers=headers,
        deleted=entry.deleted,
        replaces=entry.replaces,
    )


def dead(db: apsw.Connection, source: Source, queue: str) -> int:
    """How many dead letters there are that were not delivered again."""
    return sum(len(each) for each in _waiting(db, source, queue))


def letters(db: apsw.Connection, source: Source, queue: str, *, limit: int) -> list[Entry]:
    """The dead letters that were not delivered again, of each partition the oldest first."""
    return [
        entry
        for part, offsets in enumerate(_waiting(db, source, queue))
        for entry in source.read(
            dead_topic(queue), partition=part, start=offsets.start, end=min(offsets.stop, offsets.start + limit)
        )
    ][:limit]


def redrive(db: apsw.Connection, source: Source, queue: Declared, *, now: int, limit: int | None) -> int:
    """Delivers dead letters again, as if for the first time; how many."""
    moved = 0
    begins = source.begins(queue.topic)
    for part, offsets in enumerate(_waiting(db, source, queue.name)):
        until = offsets.stop if limit is None else min(offsets.stop, offsets.start + limit - moved)
        for entry in source.read(dead_topic(queue.name), partition=part, start=offsets.start, end=until):
            partition, offset = _number(entry, "partition"), _number(entry, "offset")
            if offset < begins[partition]:
                raise LogError(
                    f'a dead letter of queue "{queue.name}" cannot be delivered again',
                    detail=f'Its message, offset {offset} of partition {partition} of "{queue.topic}", is gone.',
                    hint=f"It can be read: penstock log read {dead_topic(queue.name)}",
                )
            deliveries.revive(db, queue.name, partition, offset, now=now)
        db.execute("INSERT OR REPLACE INTO redriven VALUES (?, ?, ?)", (queue.name, part, until))
        moved += until - offsets.start
    return moved


def _waiting(db: apsw.Connection, source: Source, queue: str) -> list[range]:
    """For each partition of the dead letters, the offsets of those that were not delivered again."""
    name = dead_topic(queue)
    if all(each.name != name for each in source.topics()):
        return []
    known = dict(db.execute("SELECT part, next FROM redriven WHERE queue = ?", (queue,)))
    begins = source.begins(name)
    return [range(max(begins[part], known.get(part, 0)), end) for part, end in enumerate(source.ends(name))]


def _number(entry: Entry, name: str) -> int:
    return int(entry.headers[HEADERS + name])
