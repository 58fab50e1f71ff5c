"""A run of a pipeline that kills itself when a batch reaches a stage.

    python -m tests.engine.victim PIPELINE STAGE COUNT alone|together [MASTER]

says which batches reach STAGE, and dies at the COUNT-th of them (from 1; 0 for never), `together` with its process
group, which it has to lead, and so with its Java process. An error is told as the command line tells it, and so is
what it waits for.
"""

import os
import signal
import sys
from pathlib import Path
from threading import Lock

from penstock.app.pipelines import Setting, Watch, run_pipeline
from penstock.engine.stages import Stage
from penstock.errors import PenstockError


class Death:
    """Comes when so many batches have reached a stage."""

    def __init__(self, stage: Stage, count: int, *, alone: bool) -> None:
        self._stage = stage
        self._count = count
        self._alone = alone
        self._seen: set[int] = set()
        self._lock = Lock()

    def __call__(self, stage: Stage, batch: int) -> None:
        if stage is not self._stage:
            return
        with self._lock:
            self._seen.add(batch)
            say(f"{batch}")
            if len(self._seen) == self._count:
                os.kill(os.getpid(), signal.SIGKILL) if self._alone else os.killpg(os.getpgid(0), signal.SIGKILL)


def say(line: str, to: int = 1) -> None:
    """At once, and in one piece: the next moment may not come."""
    os.write(to, f"{line}\n".encode())


if __name__ == "__main__":
    death = Death(Stage(sys.argv[2]), int(sys.argv[3]), alone=sys.argv[4] == "alone")
    watch = Watch(on_ready=lambda *_: say("ready"), on_stage=death, on_wait=lambda text: say(text, to=2))
    try:
        setting = Setting(sys.argv[5]) if sys.argv[5:] else Setting()
        run_pipeline(Path(sys.argv[1]), setting=setting, watch=watch)
    except PenstockError as error:
        sys.exit(str(error))
