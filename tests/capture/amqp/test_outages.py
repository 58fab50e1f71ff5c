"""A broker that goes away in the middle is waited for, and two bridges do not both take a message."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any

import pytest

from penstock.capture.amqp import Consuming, Publishing, Routing, parse_address
from penstock.errors import CaptureError
from penstock.log import Log
from services.proxy import Proxy
from tests.capture.amqp.rabbit import Rabbit, consumed, ids, intake, row

PATIENCE_SECONDS = 60


class Working:
    """A bridge at work in a thread; what it says."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.over = Event()
        self.failed: list[BaseException] = []

    @property
    def doing(self) -> dict[str, Any]:
        return {"say": self.said.append, "stop": self.over.is_set, "told": lambda _: None}

    def run(self, bridge: Consuming | Publishing) -> None:
        try:
            bridge.run()
        except BaseException as error:
            self.failed.append(error)

    def says(self, text: str) -> bool:
        return any(text in each for each in self.said)


@contextmanager
def working(make: Callable[[dict[str, Any]], Consuming | Publishing]) -> Iterator[Working]:
    work = Working()
    thread = Thread(target=work.run, args=(make(work.doing),))
    thread.start()
    try:
        yield work
    finally:
        work.over.set()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


def awaited(condition: Callable[[], bool]) -> None:
    until = monotonic() + PATIENCE_SECONDS
    while not condition():
        assert monotonic() < until
        sleep(0.02)


def _has(log: Log, records: int) -> bool:
    return len(ids(log)) == records


def test_a_broker_that_is_restarted_in_the_middle_is_waited_for(rabbit: Rabbit, log: Log) -> None:
    queue, out = rabbit.queue(), rabbit.queue()
    address = parse_address(rabbit.url)
    log.create_topic("sent", "id BIGINT NOT NULL")
    rabbit.send(queue, {str(n): row(n) for n in range(20)})
    with (
        working(lambda doing: Consuming(log, address, intake(queue), **doing)) as taking,
        working(lambda doing: Publishing(log, address, "sent", Routing("", out), name="p", **doing)) as giving,
    ):
        log.append("sent", [{"id": n} for n in range(20)])
        awaited(lambda: len(ids(log)) == 20 and log.group("p").lag()[0].records == 0)
        rabbit.broker.kill()
        log.append("sent", [{"id": n} for n in range(20, 40)])
        awaited(lambda: taking.says("trying again") and giving.says("trying again"))
        rabbit.broker.start()
        rabbit.send(queue, {str(n): row(n) for n in range(10, 40)})
        awaited(lambda: len(ids(log)) == 40 and log.group("p").lag()[0].records == 0)
        assert taking.says("is there again") and giving.says("is there again")
    assert ids(log) == [*range(40)] and not taking.failed and not giving.failed
    assert {json.loads(each.body)["id"] for each in rabbit.received(out)} == {*range(40)}


def test_a_connection_that_is_cut_is_made_again(rabbit: Rabbit, log: Log) -> None:
    queue = rabbit.queue()
    with Proxy(rabbit.broker.port) as proxy:
        address = parse_address(rabbit.url.replace(str(rabbit.broker.port), str(proxy.port)))
        with working(lambda doing: Consuming(log, address, intake(queue), **doing)) as taking:
            for start in range(0, 60, 20):
                rabbit.send(queue, {str(n): row(n) for n in range(start, start + 20)})
                awaited(partial(_has, log, start + 20))
                proxy.cut()
                awaited(lambda: taking.says("trying again"))
                proxy.heal()
    assert ids(log) == [*range(60)]


def test_of_two_bridges_the_second_waits_until_the_first_is_gone(rabbit: Rabbit, log: Log) -> None:
    queue, address = rabbit.queue(), parse_address(rabbit.url)
    with working(lambda doing: Consuming(log, address, intake(queue), **doing)) as first:
        rabbit.send(queue, {"1": row(1)})
        awaited(lambda: ids(log) == [1])
        with working(lambda doing: Consuming(log, address, intake(queue), **doing)) as second:
            awaited(lambda: second.says(f'another consumer has queue "{queue}"'))
            first.over.set()
            rabbit.send(queue, {"1": row(1), "2": row(2)})
            awaited(lambda: ids(log) == [1, 2])


def test_a_bridge_that_was_overtaken_appends_nothing(rabbit: Rabbit, log: Log) -> None:
    queue, address = rabbit.queue(), parse_address(rabbit.url)
    with working(lambda doing: Consuming(log, address, intake(queue), **doing)) as zombie:
        rabbit.send(queue, {"1": row(1)})
        awaited(lambda: ids(log) == [1])
        log.raise_epoch(f"amqp {queue}")  # as another bridge does that has the queue
        rabbit.send(queue, {"2": row(2)})
        awaited(lambda: bool(zombie.failed))
    with pytest.raises(CaptureError, match="another bridge has taken over"):
        raise zombie.failed[0]
    assert ids(log) == [1]
    consumed(log, rabbit.url, intake(queue))
    assert ids(log) == [1, 2]
