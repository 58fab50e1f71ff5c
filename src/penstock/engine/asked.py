"""What Spark tells of its batches, when it is asked: it keeps that of the last hundred.

Asked for beside the batches, never within one, and in few calls: all that Spark could tell of a batch, as JSON, takes a
millisecond. Who asks wants to tell people, and no run fails because of it: where nothing can be learned, nothing is
told.
"""

import re
from dataclasses import dataclass

from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine.nodes import Handle

PLANNING = ("latestOffset", "walCommit", "getBatch", "queryPlanning")
"""What Spark does before it hands the batch over, by its own names."""
DURATION = re.compile(r"(\w+)=(\d+)")
FILES = "rocksdbSstFileSize"
"""The size of what a state store has written to files of its own; what came since the last writing is not in it."""


@dataclass(frozen=True)
class Told:
    """Of one batch, in seconds: all of it, until it was handed to us, and Spark's note that it is over. `state`: the
    bytes of state after it, of each level from the first, where that was asked for.
    """

    batch: int
    seconds: float
    planning: float
    committing: float
    state: tuple[int, ...] = ()


def told_since(query: StreamingQuery, batch: int) -> list[Told]:
    """Of the batches after this one, as far as Spark has told, the newest first; it alone tells of the state."""
    found: list[Told] = []
    try:
        recent: Handle = query._jsq.recentProgress()
        for at in range(len(recent) - 1, -1, -1):
            progress = recent[at]
            number = progress.batchId()
            if number <= batch:
                break
            state = () if found else _state(progress)
            one = told(number, progress.durationMs().toString(), state)
            found += [one] if one else []
    except Exception:  # Java has gone, or was interrupted: what the run dies of is told elsewhere
        return found
    return found


def told(batch: int, durations: str, state: tuple[int, ...] = ()) -> Told | None:
    """From milliseconds by name, `{addBatch=40, ...}`; None if no batch was run."""
    took = {name: int(value) / 1e3 for name, value in DURATION.findall(durations)}
    if "addBatch" not in took:
        return None
    planning = sum(took.get(each, 0.0) for each in PLANNING)
    return Told(batch, took["triggerExecution"], planning, took.get("commitOffsets", 0.0), state)


def _state(progress: Handle) -> tuple[int, ...]:
    """Spark tells of its stateful operators from the sink on, as levels are counted."""
    return tuple(int(each.customMetrics().get(FILES) or 0) for each in progress.stateOperators())
