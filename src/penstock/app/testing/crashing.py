"""Crashing: a case with `crash` is played by processes of its own, each of which but the last is killed.

    python -m penstock.app.testing.crashing FOLDER

plays the case in FOLDER from where the process before it was killed. In a step with `crash` it kills its own process
group, Java too, when the state of the step's batch is committed and the batch's changes are in no topic yet. Whoever
comes to the end of the case leaves the reason against it.
"""

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock

from penstock.app.testing.bench import Ground
from penstock.app.testing.case import Case, Step
from penstock.app.testing.comparing import Seen
from penstock.app.testing.how import How
from penstock.app.testing.playing import OnEngine, reason_against
from penstock.engine.stages import Stage
from penstock.errors import EngineError

GIVEN, STAND, REASON = "given", "stand", "reason"
MOST_LINES = 5


@dataclass(frozen=True)
class Stand:
    """How far a case has come: its next step, whether that one was fed already, the frames that were looked at."""

    step: int = 0
    fed: bool = False
    frame: int = 0


class Crashes:
    """Cases with crashes, one at a time: each has a Java process of its own. None is under way after `end`."""

    def __init__(self, how: How) -> None:
        self._how = how
        self._turn = Lock()
        self._process: subprocess.Popen[str] | None = None
        self._over = False

    def reason_against(self, case: Case, folder: Path) -> str:
        """Why the case does not hold; empty if it does."""
        (folder / GIVEN).write_bytes(pickle.dumps((case, self._how)))
        _put(folder, Stand())
        with self._turn:
            while not self._over:
                before = _stand(folder)
                code, said = self._run(folder)
                if code == 0:
                    return (folder / REASON).read_text()
                if code != -signal.SIGKILL or _stand(folder) == before:
                    return f"the process that played the case came to an end that nobody wanted\n{said}"
        return "it was left"

    def _run(self, folder: Path) -> tuple[int, str]:
        """The process's exit code, and the last that it said."""
        command = [sys.executable, "-m", __name__, str(folder)]
        self._process = subprocess.Popen(
            command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        _, errors = self._process.communicate()
        return self._process.returncode, "\n".join(errors.strip().splitlines()[-MOST_LINES:])

    def end(self) -> None:
        self._over = True
        process = self._process
        if process is not None and process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)


class Doomed(OnEngine):
    """Takes steps until it is killed."""

    def __init__(self, ground: Ground, folder: Path, case: Case, stand: Stand) -> None:
        super().__init__(ground, folder, case, seen_until=stand.frame)
        self._folder = folder
        self._fed = stand.fed
        self._dies = False

    def play(self, step: Step) -> Mapping[str, Seen]:
        if not step.crash:
            return super().play(step)
        if self._fed:
            self._fed = False
            return super().play(replace(step, feed={}, restart=False))
        self._dies = True
        _put(self._folder, Stand(step.number - 1, fed=True, frame=self.frame))
        super().play(step)
        raise EngineError("there was no batch to be killed in", hint="A step with crash feeds something.")

    def on_stage(self, stage: Stage, _batch: int) -> None:
        if self._dies and stage is Stage.STATE_COMMITTED:
            os.killpg(os.getpgid(0), signal.SIGKILL)


def _put(folder: Path, stand: Stand) -> None:
    (folder / STAND).write_text(json.dumps(asdict(stand)))


def _stand(folder: Path) -> Stand:
    return Stand(**json.loads((folder / STAND).read_text()))


def main(folder: Path) -> None:
    case, how = pickle.loads((folder / GIVEN).read_bytes())
    stand = _stand(folder)
    rest = replace(case, steps=case.steps[stand.step :])
    with how.session(folder) as ground:
        reason = reason_against(rest, Doomed(ground, folder, rest, stand))
    (folder / REASON).write_text(reason)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
