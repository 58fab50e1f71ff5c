"""Runs a pipeline as `penstock run` does, until its standard input ends: `python -m benchmarks.visibility.runner ...`

It notes when its batches reach their stages, and in the end what Spark says of the last hundred.
"""

import argparse
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.app.pipelines import Setting, Watch, run_pipeline
from penstock.cli.tellers import progress_text
from penstock.engine.stages import Stage


class Notes:
    def __init__(self) -> None:
        self.stages: list[tuple[str, int, int]] = []
        self.spark: list[dict[str, int]] = []
        self._over = threading.Event()

    def watch(self) -> Watch:
        return Watch(
            on_ready=lambda *_: print("ready", flush=True),
            on_progress=lambda done: print(progress_text(done), file=sys.stderr, flush=True),
            on_stage=self._reached,
        )

    def _reached(self, stage: Stage, batch: int) -> None:
        self.stages.append((stage.name, batch, time.monotonic_ns()))

    def wait_for_end(self) -> None:
        sys.stdin.read()
        self._over.set()

    def over(self) -> bool:
        if self._over.is_set() and not self.spark:
            session: Any = SparkSession.getActiveSession()
            progress = [each for query in session.streams.active for each in query.recentProgress]
            self.spark = [dict(each["durationMs"]) for each in progress if each["numInputRows"]]
        return self._over.is_set()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pipeline", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--conf", action="append", default=[], help="a setting of Spark; repeat it for more")
    given = parser.parse_args()
    notes = Notes()
    threading.Thread(target=notes.wait_for_end, daemon=True).start()
    conf = dict(each.split("=", 1) for each in given.conf)
    run_pipeline(given.pipeline, setting=Setting(conf=conf), watch=notes.watch(), stop=notes.over)
    given.out.write_text(json.dumps({"stages": notes.stages, "spark": notes.spark}))


if __name__ == "__main__":
    main()
