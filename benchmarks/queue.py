"""Readers of the log: a queue whose messages are acknowledged one by one, and a group that commits what it has polled.

`python -m benchmarks.queue [--quick]`. On the disk, durable as for users; workers are processes, and for comparison
threads of one.
"""

import argparse
import multiprocessing
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.synchronize import Barrier
from pathlib import Path
from threading import Thread

from benchmarks._report import report
from benchmarks.log import BATCH, events, new_log
from penstock.log import Log
from penstock.log.consumers import Delivering

WORKERS = 4
GOALS = {"queue_four_processes_per_s": ">= 5,000"}
AHEAD = 100


def filled(log: Log, messages: int) -> None:
    for first in range(0, messages, BATCH):
        log.append("events", events(BATCH, first))
    log.create_queue("q", "events", Delivering(visibility=timedelta(minutes=5)))


def work(log: Log) -> int:
    """Takes messages and acknowledges each by itself, until there are none; how many."""
    done = 0
    with log.queue("q").worker() as worker:
        while messages := worker.take(AHEAD):
            for message in messages:
                message.acknowledge()
            done += len(messages)
    return done


def work_in_process(folder: Path, ready: Barrier) -> None:
    with Log.open(folder) as log:
        ready.wait()
        work(log)
        ready.wait()


def processes(folder: Path, messages: int, workers: int) -> float:
    """Messages a second, from when all workers are ready until all have found nothing more."""
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Barrier(workers + 1)
    with new_log(folder / "queue") as log:
        filled(log, messages)
        started = [spawn.Process(target=work_in_process, args=(log.folder, ready)) for _ in range(workers)]
        for each in started:
            each.start()
        ready.wait()
        begun = time.perf_counter()
        ready.wait()
        took = time.perf_counter() - begun
        for each in started:
            each.join()
        check_done(log)
    return messages / took


def threads(folder: Path, messages: int, workers: int) -> float:
    with new_log(folder / "queue") as log:
        filled(log, messages)
        started = [Thread(target=work, args=(log,)) for _ in range(workers)]
        begun = time.perf_counter()
        for each in started:
            each.start()
        for each in started:
            each.join()
        took = time.perf_counter() - begun
        check_done(log)
    return messages / took


def check_done(log: Log) -> None:
    state = log.queue("q").describe()
    assert (state.waiting, state.in_flight, state.dead) == (0, 0, 0), state


def synced(folder: Path, messages: int) -> float:
    """One worker that takes one message at a time and makes each acknowledgement survive a power failure."""
    with new_log(folder / "queue") as log:
        filled(log, max(BATCH, messages))
        begun = time.perf_counter()
        with log.queue("q").worker() as worker:
            for _ in range(messages):
                worker.take()[0].acknowledge()
                worker.sync()
        return messages / (time.perf_counter() - begun)


def group(folder: Path, records: int) -> float:
    """One member, which commits after every poll."""
    with new_log(folder / "queue") as log:
        filled(log, records)
        begun, read = time.perf_counter(), 0
        with log.group("g").join("events") as member:
            while entries := member.poll(BATCH):
                read += len(entries)
                member.commit()
        assert read == records
        return records / (time.perf_counter() - begun)


def waiting(folder: Path, count: int) -> dict[str, float]:
    """From when a message is handed to `append` until a worker that waits for it has it."""
    took = []
    with new_log(folder / "queue") as log:
        log.create_queue("q", "events")
        with log.queue("q").worker() as worker:
            for each in range(count):
                begun = time.perf_counter()
                appending = Thread(target=log.append, args=("events", events(1, each)))
                appending.start()
                [message] = worker.take(wait=timedelta(seconds=30))
                took.append((time.perf_counter() - begun) * 1000)
                message.acknowledge()
                appending.join()
    cuts = statistics.quantiles(took, n=100)
    return {"queue_waiting_p50_ms": cuts[49], "queue_waiting_p99_ms": cuts[98]}


def median(rounds: int, measure: Callable[[], float]) -> float:
    return statistics.median(measure() for _ in range(rounds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller; for a look, not for the record")
    quick = parser.parse_args().quick
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir="."))
    scale, rounds = (10, 1) if quick else (1, 5)
    messages = 100_000 // scale
    try:
        figures = {
            "queue_four_processes_per_s": median(rounds, lambda: processes(folder, messages, WORKERS)),
            "queue_one_process_per_s": median(rounds, lambda: processes(folder, messages, 1)),
            "queue_four_threads_per_s": median(rounds, lambda: threads(folder, messages, WORKERS)),
            "queue_synced_one_by_one_per_s": median(rounds, lambda: synced(folder, 1000 // scale)),
            "group_records_per_s": median(rounds, lambda: group(folder, 5 * messages)),
            **waiting(folder, 1000 // scale),
        }
    finally:
        shutil.rmtree(folder)
    report("queue-quick" if quick else "queue", figures, GOALS)


if __name__ == "__main__":
    main()
