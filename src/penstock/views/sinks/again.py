"""Again: the dead letters of a sink are sent once more, the oldest first, under the identity that they had.

Which were taken is kept in a small file after each: whoever dies in between sends one again. One at a time sends those
of a sink, of all processes that share the folder: two would send letters twice. The letters themselves stay in their
topic.
"""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import BeingSent, DamagedNote, ViewError
from penstock.log.disk import Disk
from penstock.log.protocol import OrderedLog
from penstock.views.sinks.delivering import Courier, Letter, Stop, Undelivered, Unwanted, dead_topic
from penstock.views.sinks.news import Source


def redrive(
    source: Source, courier: Courier, path: Path, disk: Disk, *, limit: int | None = None, stop: Stop = lambda: False
) -> int:
    """Sends the letters that wait, at most so many; how many were taken. The first that is not ends it, and so does
    `stop`, before the next. Refused while somebody else sends them.
    """
    sent = 0
    topic = dead_topic(source.pipeline, source.view, courier.kind)
    try:
        with _alone(source.view, courier.kind, path):
            for entry in source.log.read(topic, start=first_waiting(source.log, topic, path)):
                if sent == limit or stop():
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
        return max(begin, int(found["next"])) if found["log"] == log.identity else begin
    except FileNotFoundError:
        return begin
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise DamagedNote(
            f'"{path}" cannot be read',
            detail=f"{type(error).__name__}: {error}.",
            hint="Take the file away: then all dead letters of the sink can be sent again, also those that were.",
        ) from error


@contextmanager
def _alone(view: str, kind: str, path: Path) -> Iterator[None]:
    """Inside, nobody else sends the letters whose note is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_suffix(".lock"), "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BeingSent(
                f'dead letters of the {kind} of view "{view}" are being sent again already',
                detail="Somebody else does it; two would send letters twice.",
                hint="Try again when that is done.",
            ) from None
        yield
