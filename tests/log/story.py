"""A story that the crash tests tell to a log: topics, appends of every kind, sealing; and what must be in it after.

Every step has its own number, which is its sequence: told again, it is not appended again. The rows of a step follow
from its number alone.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.log import Appended, Log, Record
from penstock.log.columns import block_schema

TOPICS: dict[str, dict[str, Any]] = {
    "a": {"schema": "id INT NOT NULL, text STRING", "key": "id", "partitions": 2},
    "b": {"schema": "id INT NOT NULL, text STRING"},
    "raw": {},
}
STEPS = 10
SEALED_AFTER = (3, 7)


def rows(step: int, topic: str) -> list[dict[str, Any]]:
    """What a step appends to a topic."""
    among = {"a": (0, 2, 4), "b": (0, 1, 2), "raw": (3,)}
    size = 3 if step % 5 != 4 else 15
    return (
        [{"id": step * 100 + at, "text": f"{topic} {at} " * size} for at in range(3)]
        if step % 5 in among[topic]
        else []
    )


def take(log: Log, step: int) -> Appended:
    """Appends what the step appends: to one topic, to two at once, from files."""
    mine = {topic: rows(step, topic) for topic in TOPICS if rows(step, topic)}
    if step % 5 == 2:
        files = {(topic, 0): [_staged(log, topic, mine[topic])] for topic in mine}
        return log.append_files(files, producer="story", sequence=step)
    records = {topic: [_record(topic, row) for row in mine[topic]] for topic in mine}
    return log.append_all(records, producer="story", sequence=step)


def _record(topic: str, row: dict[str, Any]) -> Record:
    if topic == "raw":
        return Record(row["text"].encode(), key=str(row["id"]).encode(), headers={"id": str(row["id"]).encode()})
    return Record(row)


def _staged(log: Log, topic: str, values: list[dict[str, Any]]) -> Path:
    path = log.staging_path()
    schema = block_schema(log.topic(topic).schema, ())
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_pylist(values, schema=schema))
    return path


def tell(log: Log, told: Callable[[int], None] = lambda count: None, *, seal: bool = True) -> None:
    """The whole story; `told` hears how many steps have been acknowledged."""
    for name, declared in TOPICS.items():
        log.create_topic(name, **declared)
    for step in range(STEPS):
        take(log, step)
        told(step + 1)
        if seal and step in SEALED_AFTER:
            log.seal()


def entries(log: Log, topic: str, **how: Any) -> list[tuple[int, int, dict[str, Any]]]:
    """Partition, offset and row of everything in a topic."""
    found = []
    for entry in log.read(topic, **how):
        if isinstance(entry.value, bytes):
            assert entry.headers["id"] == entry.key
            row = {"id": int(entry.headers["id"]), "text": entry.value.decode()}
        else:
            row = dict(entry.value or {})
        found.append((entry.partition, entry.offset, row))
    return found


def steps_in(log: Log) -> int:
    """How many steps are in the log: each whole and once, none missing before the last, offsets without gaps."""
    steps = [header.sequence for header in log.frames() if header.producer == "story"]
    assert steps == list(range(len(steps)))
    for topic in {each.name for each in log.topics()}:
        found = entries(log, topic)
        want = [row for step in range(len(steps)) for row in rows(step, topic)]
        assert sorted((row for _, _, row in found), key=lambda row: row["id"]) == want
        for partition, end in enumerate(log.ends(topic)):
            mine = [(offset, row["id"]) for p, offset, row in found if p == partition]
            assert [offset for offset, _ in mine] == list(range(end))
            assert mine == sorted(mine, key=lambda each: each[1])
    return len(steps)


def assert_goes_on(log: Log) -> None:
    """Told again, the story is completed and nothing is doubled; sealed, it is still the same."""
    tell(log, seal=False)
    assert steps_in(log) == STEPS
    assert log.seal() == 0
    assert steps_in(log) == STEPS
    assert all(not finding.damage for finding in log.check())
