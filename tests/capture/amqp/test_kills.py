"""Killed at any point: a queue's messages are in the log once, and none of a topic's records is passed over."""

import json
import os
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.capture.amqp import Routing
from penstock.capture.amqp.link import Link, Parcel, Sent
from penstock.log import Log
from tests.capture.amqp.rabbit import SCHEMA, Rabbit, consumed, ids, intake, letters, published, row
from tests.effort import sample
from tests.log.dying import HOW, DyingDisk, in_child

POISON = (7, 23)
COUNT = 40
POINTS = [(nth, how) for nth in range(1, 14) for how in HOW]
"""So many steps has the first run of a bridge; later ones have fewer."""
SENDING = range(1, 12)


def _mortal(disk: DyingDisk, what: str) -> None:
    """The link's method is one more thing to die at."""
    plain = getattr(Link, what)

    def dying(*given: object) -> object:
        answer: list[object] = []
        disk._step(lambda: answer.append(plain(*given)))
        return answer[0]

    setattr(Link, what, dying)


def _consume(_tell: Callable[[int], None], folder: Path, url: str, queue: str, nth: int, how: str) -> None:
    disk = DyingDisk(nth, how)
    _mortal(disk, "acknowledge")
    with Log.open(folder, disk=disk) as log:
        consumed(log, url, intake(queue))


@pytest.mark.parametrize(("nth", "how"), sample(POINTS, 12))
def test_a_killed_consumer_loses_and_doubles_nothing(rabbit: Rabbit, tmp_path: Path, nth: int, how: str) -> None:
    queue, folder, died = rabbit.queue(), tmp_path / "log", list[bool]()
    with Log.open(folder) as log:
        log.create_topic("things", SCHEMA)
    for start in range(0, COUNT, 10):  # so that some acknowledgements come before the kill
        bodies = {str(n): b"{" if n in POISON else row(n) for n in range(start, start + 10)}
        rabbit.send(queue, bodies)
        died.append(in_child(_consume, folder, rabbit.url, queue, nth, how)[1])
    assert any(died)
    with Log.open(folder) as log:
        consumed(log, rabbit.url, intake(queue))
        assert sorted(ids(log)) == [n for n in range(COUNT) if n not in POISON]
        assert sorted(each["message_id"] for each in letters(log, queue)) == sorted(map(str, POISON))
    assert rabbit.waiting(queue) == 0


def _publish(_tell: Callable[[int], None], folder: Path, url: str, queue: str, nth: int) -> None:
    """Dies when the `nth` step of sending or committing is done."""
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1
        if steps == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    plain = Link.send

    def send(link: Link, parcels: list[Parcel]) -> Sent:
        step()
        sent = plain(link, parcels)
        step()
        return sent

    Link.send = send  # type: ignore[assignment, method-assign]
    with Log.open(folder) as log:
        told = {"told": lambda _: step(), "session": timedelta(milliseconds=200)}
        published(log, url, "things", Routing("", queue), **told)


@pytest.mark.parametrize("nth", sample(SENDING, 4, always=[2]))
def test_a_killed_publisher_passes_nothing_over(rabbit: Rabbit, tmp_path: Path, nth: int) -> None:
    """Its consumer knows repeated messages by their ids: there every record is once."""
    queue, folder = rabbit.queue(), tmp_path / "log"
    with Log.open(folder) as log:
        log.create_topic("things", SCHEMA)
        log.create_topic("copies", SCHEMA)
        for start in range(0, 2_000, 400):
            log.append("things", [{"id": n} for n in range(start, start + 400)])
    _, killed = in_child(_publish, folder, rabbit.url, queue, nth)
    with Log.open(folder) as log:
        published(log, rabbit.url, "things", Routing("", queue), session=timedelta(milliseconds=200))
        tally = consumed(log, rabbit.url, intake(queue, "copies"))
        assert killed and sorted(ids(log, "copies")) == [*range(2_000)]
        assert tally.repeated <= 500  # what was on its way


def test_dead_letters_of_a_killed_publisher_are_there_once(rabbit: Rabbit, tmp_path: Path) -> None:
    exchange, folder = rabbit.exchange(), tmp_path / "log"

    def bury(_tell: Callable[[int], None]) -> None:
        with Log.open(folder) as log:
            log.group("test").join("things", terms=None).leave()
            plain = log.consumers._facts.writing

            def dying() -> object:
                if any(True for _ in log.read("amqp.test.dead-letters")):
                    os.kill(os.getpid(), signal.SIGKILL)
                return plain()

            log.consumers._facts.writing = dying  # type: ignore[assignment, method-assign]
            published(log, rabbit.url, "things", Routing(exchange, "k"), session=timedelta(milliseconds=200))

    with Log.open(folder) as log:
        log.create_topic("things", SCHEMA)
        log.append("things", [{"id": n} for n in range(5)])
    _, killed = in_child(bury)
    with Log.open(folder) as log:
        assert killed and len(letters(log, "test")) == 5
        log.append("things", [{"id": 5}])
        published(log, rabbit.url, "things", Routing(exchange, "k"), session=timedelta(milliseconds=200))
        assert [json.loads(each["body"])["id"] for each in letters(log, "test")] == [*range(6)]
