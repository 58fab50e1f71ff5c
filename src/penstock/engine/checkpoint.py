"""The checkpoint of a lineage: what Spark has written down of its batches, held against the log.

Spark notes which frames a batch reads (`offsets`) before it runs it, and that it is over (`commits`) after its frame is
in the log. So a checkpoint is never ahead of its log by more than the one batch that is under way. One that is belongs
to a log that has lost something, or to another. One that is behind was put in place of a newer one: its batches run
again, and as long as they read the same frames they change nothing (`batches.py`).
"""

import json
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.engine.lineage import Lineage
from penstock.errors import EngineError
from penstock.log.protocol import OrderedLog

FILES = "spark.sql.streaming.checkpointFileManagerClass"
OUR_FILES = "penstock.kernel.engine.CheckpointFiles"
STATE_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
AGAIN = "Use the log it was made with, or compute the answers anew from this one: penstock reset PIPELINE"


def places(checkpoint: Path, batch: int) -> tuple[int, int]:
    """The frames that a batch reads, from its offsets in the checkpoint and those of the batch before."""
    end = _frame(checkpoint / "offsets" / str(batch))
    return (_frame(checkpoint / "offsets" / str(batch - 1)) if batch else 0), end


def check_fits(lineage: Lineage, log: OrderedLog) -> None:
    """Refuses a checkpoint that is ahead of the log."""
    # The checkpoint first: a run that is under way moves both, and the log must not be the older one of the two.
    planned, over = _newest(lineage.checkpoint / "offsets"), _newest(lineage.checkpoint / "commits")
    if planned is None:
        return
    end = _frame(lineage.checkpoint / "offsets" / str(planned))
    last, mark = log.last(lineage.producer), log.mark()
    if end > mark.next_frame:
        raise _ahead(lineage, f"It has read up to frame {end - 1}; the last frame of the log is {mark.next_frame - 1}.")
    framed = -1 if last is None else int(last.note["batch"])
    if planned > framed + 1 or (over is not None and over > framed):
        known = f"the last one in the log is {framed}" if framed >= 0 else "the log has none"
        raise _ahead(lineage, f"It has batch {max(planned, over or 0)}; {known}.")


def address(checkpoint: Path) -> str:
    """A path of this machine, also where Spark's files lie elsewhere unless it is told otherwise."""
    return f"file://{checkpoint.absolute()}"


def take_up(spark: SparkSession, checkpoint: Path) -> None:
    """The session's next query goes on with the checkpoint: by files that are synced, whose names are given once, also
    in a folder that machines share; and with files of state that are named as they were when it was begun.
    """
    if spark.conf.get(FILES, None) is None:
        spark.conf.set(FILES, OUR_FILES)
    if (begun := _state_format(checkpoint)) is not None:
        spark.conf.set(STATE_FORMAT, begun)


def _state_format(checkpoint: Path) -> str | None:
    """As the newest commit says; None before the first."""
    newest = _newest(checkpoint / "commits")
    if newest is None:
        return None
    path = checkpoint / "commits" / str(newest)
    try:
        version, *_ = path.read_text().splitlines()
    except (OSError, ValueError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}.") from error
    return "1" if version == "v1" else "2"


def _ahead(lineage: Lineage, detail: str) -> EngineError:
    return EngineError(
        f'the checkpoint of pipeline "{lineage.pipeline}" is ahead of the log', detail=detail, hint=AGAIN
    )


def _newest(folder: Path) -> int | None:
    return max((int(path.name) for path in folder.glob("[0-9]*") if path.name.isdigit()), default=None)


def _frame(path: Path) -> int:
    """Where the batch ends: all sources of a query stand at the same frame; at the first if none reads the log."""
    try:
        version, _, *sources = path.read_text().splitlines()
        frames = {int(json.loads(source)["frame"]) for source in sources if '"frame"' in source}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}.") from error
    if sources and all('"static"' in source for source in sources):
        frames = {0}
    if version != "v1" or len(frames) != 1:
        raise _damaged(path, f"The sources of the query do not stand at one place: {sources}.")
    return frames.pop()


def _damaged(path: Path, detail: str) -> EngineError:
    return EngineError(
        f'the checkpoint\'s file "{path.parent.name}/{path.name}" cannot be read',
        detail=detail,
        hint="It was lost or damaged. To compute the answers anew from the log: penstock reset PIPELINE",
    )
