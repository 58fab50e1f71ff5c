"""Appends events to a log at a steady rate: `python -m benchmarks.visibility.producer --log FOLDER --rate 1000 ...`

Every hundredth of a second it hands over what is due by then; when an append took longer than that, the next one has
more. Each record carries when it was handed over. Of every append, its frame, its records, and when they were due and
handed over go to a file; so that what waited for the producer is seen, too.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.log import Log

TICK_SECONDS = 0.01
KEYS = 10_000


def produce(log: Log, topic: str, rate: int, seconds: float) -> np.ndarray:
    """A row for each append: frame, records, due, handed over; times in nanoseconds of the system's steady clock."""
    chance = np.random.default_rng(1)
    done: list[tuple[int, int, int, int]] = []
    begun, sent, total = time.monotonic(), 0, int(rate * seconds)
    while sent < total:
        time.sleep(TICK_SECONDS - (time.monotonic() - begun) % TICK_SECONDS)
        count = min(int((time.monotonic() - begun) * rate), total) - sent
        due = int((begun + sent / rate) * 1e9)
        columns = {"k": chance.integers(0, KEYS, count), "v": chance.integers(0, 1000, count)}
        handed = time.monotonic_ns()
        rows = pa.record_batch({**columns, "sent": np.full(count, handed)})
        frame = log.append(topic, rows).frame
        done.append((frame, count, due, handed))
        sent += count
    return np.array(done, dtype=np.int64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--topic", default="events")
    parser.add_argument("--rate", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    with Log.open(given.log, create=False) as log:
        np.save(given.out, produce(log, given.topic, given.rate, given.seconds))


if __name__ == "__main__":
    main()
