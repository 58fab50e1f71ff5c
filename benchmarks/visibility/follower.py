"""Notes when the batches of a pipeline can be read, in the log and in its store.

`python -m benchmarks.visibility.follower --log FOLDER --store FILE --pipeline NAME --out FILE`, until a line with the
number of a frame comes on standard input and both have passed that frame.

A batch that has read up to the frame `until` shows every record in the frames before it, in all views at once: its own
frame holds the changes of all of them.
"""

import argparse
import sys
import threading
import time
from pathlib import Path

import numpy as np

from penstock.errors import ViewError
from penstock.log import Log
from penstock.views import Position, ViewReader

POLL_SECONDS = 0.001
PATIENCE_SECONDS = 600.0
Seen = list[tuple[int, int]]
"""Up to which frame the sources were read, and when that was seen."""


class Follower:
    def __init__(self, log: Log, pipeline: str, store: Path) -> None:
        self._log = log
        self._pipeline = pipeline
        self._store = store
        self._reader: ViewReader | None = None
        self._frame = log.mark().next_frame
        self.in_log: Seen = []
        self.in_store: Seen = []

    def look(self) -> None:
        self._look_at_log()
        position = self._position()
        if position and (not self.in_store or position.until > self.in_store[-1][0]):
            self.in_store.append((position.until, time.monotonic_ns()))

    def _look_at_log(self) -> None:
        end = self._log.mark().next_frame
        if end == self._frame:
            return
        for header in self._log.frames(self._frame):
            if header.frame >= end:
                break
            if header.note.get("pipeline") == self._pipeline and "until" in header.note:
                self.in_log.append((int(header.note["until"]), time.monotonic_ns()))
        self._frame = end

    def _position(self) -> Position | None:
        try:
            self._reader = self._reader or ViewReader(self._store)
            return self._reader.position()
        except ViewError:  # it is not there yet
            return None

    def passed(self, frame: int) -> bool:
        return all(seen and seen[-1][0] > frame for seen in (self.in_log, self.in_store))


def follow(follower: Follower) -> None:
    told: list[str] = []
    threading.Thread(target=lambda: told.append(sys.stdin.readline()), daemon=True).start()
    late = float("inf")
    while not (told and told[0] and follower.passed(int(told[0]))):
        follower.look()
        time.sleep(POLL_SECONDS)
        late = min(late, time.monotonic() + PATIENCE_SECONDS) if told else late
        if told == [""] or time.monotonic() > late:
            sys.exit(f"the last frame, {told[0]}, was not seen in time")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("log", "store", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--pipeline", required=True)
    given = parser.parse_args()
    with Log.open(given.log, create=False) as log:
        follower = Follower(log, given.pipeline, given.store)
        print("ready", flush=True)
        follow(follower)
    np.savez(given.out, in_log=np.array(follower.in_log), in_store=np.array(follower.in_store))


if __name__ == "__main__":
    main()
