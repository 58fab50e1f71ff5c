"""What Flink's log says of a job's checkpoints: how large the last one is, and how long the job's end waited for one.

A job ends with a checkpoint, which Flink begins as soon as all input was read. If tasks close just then it is declined,
and nothing happens until the next one is due, seconds later. That wait is a matter of luck, and is told apart.
"""

import re
from dataclasses import dataclass
from pathlib import Path

LINE = re.compile(r"(?P<at>\d+) (?P<what>(?:Triggering|Completed|Decline) [cC]heckpoint) (?P<rest>.*)")
"""`Triggering Checkpoint`, with a capital, opens the sentence that it failed."""
SIZE = re.compile(r"\((\d+) bytes")
"""The size is that of the whole state, whatever part of it was written anew."""
LOGGING = """rootLogger.level = WARN
rootLogger.appenderRef.file.ref = file
logger.checkpoints.name = org.apache.flink.runtime.checkpoint.CheckpointCoordinator
logger.checkpoints.level = INFO
appender.file.name = file
appender.file.type = FILE
appender.file.append = false
appender.file.fileName = {file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{UNIX_MILLIS}} %m%n
"""


@dataclass(frozen=True)
class Checkpoints:
    number: int
    last_bytes: int | None
    waited_seconds: float


def checkpoints(log: Path, job: str) -> Checkpoints:
    sizes: list[int] = []
    waited, declined_at = 0, None
    for line in LINE.finditer(log.read_text()):
        if job not in line["rest"]:
            continue
        match line["what"]:
            case "Completed checkpoint":
                sizes += [int(size) for size in SIZE.findall(line["rest"])]
            case "Decline checkpoint" | "Triggering Checkpoint" if declined_at is None:
                declined_at = int(line["at"])
            case "Triggering checkpoint" if declined_at is not None:
                waited, declined_at = waited + int(line["at"]) - declined_at, None
    return Checkpoints(len(sizes), sizes[-1] if sizes else None, waited / 1000)
