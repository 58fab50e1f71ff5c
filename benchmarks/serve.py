"""Serving: look-ups by key on one core, and many readers that follow a view's changes at once.

`python -m benchmarks.serve [--quick]`. The server is a process of its own (`penstock serve`), over loopback; those who
ask are this process. The log and the store are written as an engine writes them, without one.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from benchmarks._processes import cpu_seconds
from benchmarks._report import report
from penstock.log import Log, Record
from penstock.views import SqliteStore, catch_up

ROWS = 100_000
CONNECTIONS = 16
PIPELINE = """
CREATE STREAM orders (city STRING, amount BIGINT);
CREATE VIEW spend AS SELECT city, count(*) AS orders, sum(amount) AS spend FROM orders GROUP BY city;
"""
GOALS = {"lookups_per_cpu_s": ">= 2,000", "followers": ">= 500"}
PATIENCE_SECONDS = 300.0
"""A change that some follower does not have by then is lost."""


class Shop:
    """What the engine of a pipeline would write."""

    def __init__(self, folder: Path, log: Log) -> None:
        self._folder, self._log = folder, log
        self._batch = 0
        log.create_topic("orders", "city STRING, amount BIGINT")
        log.create_topic("shop.1.spend", "city STRING, orders BIGINT, spend BIGINT", key="city", own=True)
        views = {"spend": {"key": ["city"], "store": "table"}}
        note = {"pipeline": "shop", "current": 1, "views": views, "reads": ["orders"]}
        log.append_all({}, producer="shop", sequence=1, note=note)

    def write(self, records: list[Record]) -> None:
        end = self._log.mark().next_frame
        note = {"pipeline": "shop", "lineage": 1, "batch": self._batch, "from": 0, "until": end}
        self._log.append_all({"shop.1.spend": records}, producer="shop/1", sequence=self._batch, note=note)
        self._batch += 1

    def keep(self) -> None:
        with SqliteStore(self._folder / ".penstock/views.sqlite") as store:
            catch_up(self._log, "shop", store)


def row(city: int, orders: int) -> dict[str, Any]:
    return {"city": f"c{city}", "orders": orders, "spend": 7 * orders}


@contextmanager
def server(folder: Path) -> Iterator[tuple[int, int]]:
    """The process and the port of a server."""
    command = [sys.executable, "-c", "from penstock.cli import main; main()", "serve", str(folder)]
    command += ["--bind", "127.0.0.1:0", "--rate", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield process.pid, int(process.stderr.readline().rpartition(":")[2])
        finally:
            process.terminate()


async def look_ups(port: int, count: int) -> list[float]:
    """Asks over connections that stay open, each one after the other; how long each took."""
    took: list[float] = []

    async def ask(first: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for at in range(first, count, CONNECTIONS):
            begun = time.perf_counter()
            request = f"GET /views/spend/row?key=c{at * 7919 % ROWS} HTTP/1.1\r\nhost: localhost\r\n\r\n"
            writer.write(request.encode())
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            await reader.readexactly(length)
            took.append(time.perf_counter() - begun)
        writer.close()

    await asyncio.gather(*(ask(first) for first in range(CONNECTIONS)))
    return took


async def followed(port: int, shop: Shop, *, followers: int, batches: int) -> tuple[list[float], int]:
    """From a change's append until each follower has it, in seconds; how many changes arrived. Fails with a follower
    that does, or when one waits in vain.
    """
    sent: dict[int, float] = {}
    waits: list[float] = []
    ready = asyncio.Semaphore(0)

    async def follow() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        with closing(writer):
            writer.write(b"GET /views/spend/changes HTTP/1.1\r\nhost: localhost\r\n\r\n")
            await reader.readuntil(b"event: start")
            ready.release()
            for batch in range(batches):
                await reader.readuntil(b"event: batch")
                waits.append(time.perf_counter() - sent[batch])

    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        for _ in range(followers):
            group.create_task(follow())
        for _ in range(followers):
            await ready.acquire()
        for batch in range(batches):
            sent[batch] = time.perf_counter()
            change = Record(row(batch, batch + 2), replaces=row(batch, 1))
            await asyncio.to_thread(shop.write, [change])
            while len(waits) < followers * (batch + 1):
                await asyncio.sleep(0.005)
    return waits, len(waits)


def figures(folder: Path, *, count: int, followers: int, batches: int) -> Mapping[str, float]:
    (folder / ".penstock").mkdir(parents=True)
    (folder / "pipeline.sql").write_text(PIPELINE)
    with Log.open(folder / ".penstock/log") as log:
        shop = Shop(folder, log)
        shop.write([Record(row(city, 1)) for city in range(ROWS)])
        shop.keep()
        with server(folder) as (process, port):
            asyncio.run(look_ups(port, 500))
            before, begun = cpu_seconds(process), time.perf_counter()
            took = asyncio.run(look_ups(port, count))
            wall, used = time.perf_counter() - begun, cpu_seconds(process) - before
            waits, arrived = asyncio.run(followed(port, shop, followers=followers, batches=batches))
    assert arrived == followers * batches
    return {
        "lookups_per_s": count / wall,
        "lookups_per_cpu_s": count / used,
        "lookup_p50_ms": 1000 * statistics.median(took),
        "lookup_p99_ms": 1000 * sorted(took)[len(took) * 99 // 100],
        "followers": followers,
        "change_p50_ms": 1000 * statistics.median(waits),
        "change_p99_ms": 1000 * sorted(waits)[len(waits) * 99 // 100],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    os.environ.pop("PENSTOCK_LOG", None)
    with tempfile.TemporaryDirectory() as folder:
        count, batches = (2_000, 3) if quick else (20_000, 20)
        found = figures(Path(folder) / "shop", count=count, followers=500, batches=batches)
    report("serve-quick" if quick else "serve", found, GOALS)


if __name__ == "__main__":
    main()
