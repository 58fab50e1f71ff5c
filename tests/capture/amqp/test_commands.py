"""`penstock bridge amqp`: as processes, which are stopped, killed, and say what they do."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from penstock.log import Log
from services.processes import free_ports
from tests.capture.amqp.rabbit import Rabbit, ids, row

PENSTOCK = [sys.executable, "-c", "from penstock.cli import main; main()", "bridge", "amqp"]
PROMPT_SECONDS = 10
PATIENCE_SECONDS = 60
Process = subprocess.Popen[str]


@contextmanager
def started(url: str, folder: Path, *words: str) -> Iterator[Process]:
    environment = os.environ | {"PENSTOCK_AMQP": url, "PENSTOCK_LOG": str(folder)}
    with subprocess.Popen([*PENSTOCK, *words], stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def awaited(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def ended(process: Process, how: signal.Signals) -> tuple[int, str]:
    """Its exit code, promptly, and what it has said."""
    process.send_signal(how)
    began = time.monotonic()
    _, said = process.communicate(timeout=PATIENCE_SECONDS)
    assert time.monotonic() - began < PROMPT_SECONDS
    return process.returncode, said


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_consumer_is_stopped_promptly(rabbit: Rabbit, log: Log, how: signal.Signals) -> None:
    queue = rabbit.queue()
    rabbit.send(queue, {"1": row(1)})
    with started(rabbit.url, log.folder, "consume", queue, "things") as bridge:
        awaited(lambda: ids(log) == [1] and rabbit.waiting(queue) == 0)
        assert ended(bridge, how) == (130, 'stopping\n1 message into "things"\n')


def test_who_waits_for_a_broker_is_stopped_promptly(log: Log) -> None:
    (port,) = free_ports(1)
    with started(f"amqp://ann:hunter2@127.0.0.1:{port}", log.folder, "publish", "things", "x") as bridge:
        assert bridge.stderr is not None
        first = bridge.stderr.readline()
        assert first.startswith(f"RabbitMQ at 127.0.0.1:{port}: Connection refused; trying again in 0.")
        code, said = ended(bridge, signal.SIGTERM)
    assert code == 130 and said.endswith('stopping\n0 messages to "x"\n') and "hunter2" not in first + said


def _has_more(log: Log, records: int) -> bool:
    return log.ends("things")[0] > records


def test_a_consumer_that_is_killed_again_and_again_loses_and_doubles_nothing(rabbit: Rabbit, log: Log) -> None:
    queue = rabbit.queue()
    for start in range(0, 3_000, 1_000):
        rabbit.send(queue, {str(n): row(n) for n in range(start, start + 1_000)})
        with started(rabbit.url, log.folder, "consume", queue, "things") as bridge:
            awaited(partial(_has_more, log, start))
            bridge.kill()
    with started(rabbit.url, log.folder, "consume", queue, "things", "--once") as bridge:
        assert bridge.wait(PATIENCE_SECONDS) == 0
    assert sorted(ids(log)) == [*range(3_000)]


def test_errors_are_three_lines_and_show_no_password(rabbit: Rabbit, log: Log) -> None:
    url = rabbit.url.replace("guest:guest", "ann:hunter2")
    with started(url, log.folder, "consume", "q", "things", "--debug") as bridge:
        _, said = bridge.communicate(timeout=PATIENCE_SECONDS)
    assert bridge.returncode == 1 and 'does not let "ann" in' in said and "hunter2" not in said
