"""Again: the dead letters of a sink are sent once more, the oldest first, under the identity that they had.

Which were taken is kept in a small file after each: whoever dies in between sends one again. The letters themselves
stay in their topic.
"""

import json
from pathlib import Path

from penstock.errors import ViewError
from penstock.log.disk import Disk
from penstock.log.protocol import OrderedLog
from penstock.views.sinks.delivering import Courier, Letter, Undelivered, Unwanted, dead_topic
from penstock.views.sinks.news import Source


def redrive(source: Source, courier: Courier, path: Path, disk: Disk, *, limit: int | None = None) -> int:
    """Sends the letters that wait, at most so many; how many were taken. The first that is not ends it."""
    sent = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    topic = dead_topic(source.pipeline, source.view, courier.kind)
    try:
        for entry in source.log.read(topic, start=first_waiting(source.log, topic, path)):
            if sent == limit:
                break
            assert isinstance(entry.value, dict)
            courier.deliver(Letter(entry.value["id"], entry.value["body"]))
            disk.write_whole(path, json.dumps({"log": source.log.identity, "next": entry.offset + 1}).encode())
            sent += 1
    except (Undelivered, Unwanted) as failure:
        reason = failure.reason if isinstance(failure, Undelivered) else "It answered 410 Gone"
        raise ViewError(
            f'the {courier.kind} of view "{source.view}" does not reach {courier.where}',
            detail=f"{reason}. Before it, {sent:,} of the dead letters were taken.",
            hint="Those that are left can be sent again later.",
        ) from failure
    finally:
        courier.close()
    return sent


def redriven_path(folder: Path, view: str, kind: str) -> Path:
    """Where it is written down which were sent again."""
    return folder / f"{view}.{kind}.redriven.json"


def waiting(log: OrderedLog, topic: str, path: Path) -> int:
    """How many dead letters were not sent again."""
    return log.describe(topic).partitions[0].end - first_waiting(log, topic, path)


def first_waiting(log: OrderedLog, topic: str, path: Path) -> int:
    begin = log.describe(topic).partitions[0].begin
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return begin
    return max(begin, int(found["next"])) if found["log"] == log.identity else begin
