"""Masters: where Spark runs, as `--master` names it.

`local[4]` is this process. Everything else has executors in processes of their own: `local-cluster[2,1,1024]` on this
machine, `spark://HOST:PORT` those that the workers of a standalone cluster start, `yarn`, `k8s://...`.
"""

import re
import socket
from contextlib import closing

from pyspark.sql import SparkSession

from penstock.errors import EngineError

STANDALONE = "spark://"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
PARTITIONS = "spark.sql.shuffle.partitions"
SECONDS = 5.0
"""So long a master may take to answer at all."""


def is_local(master: str) -> bool:
    """Whether this process does all the work itself."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def runs_together(spark: SparkSession) -> bool:
    """Whether the tasks of a stage all run at the same time, in this process, and none is tried again by itself."""
    found = re.fullmatch(r"local\[(\d+)\]", str(spark.sparkContext.master))
    alone = spark.sparkContext.getConf().get("spark.task.cpus", "1") == "1"
    return found is not None and alone and int(found[1]) >= int(str(spark.conf.get(PARTITIONS)))


def is_on_this_machine(master: str) -> bool:
    """Whether nobody but this machine has to do with it."""
    return master.startswith("local") or all(host in LOOPBACK for host, _ in addresses(master) or [("", 0)])


def slots(master: str) -> int | None:
    """How many tasks `master` runs at once, where its name says so."""
    if found := re.fullmatch(r"local\[(\d+)(?:,\s*\d+)?\]", master):
        return int(found[1])
    if found := re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*\]", master):
        return int(found[1]) * int(found[2])
    return 1 if master == "local" else None


def addresses(master: str) -> list[tuple[str, int]]:
    """The masters of a standalone cluster, of which one leads and others may stand by; none of anything else."""
    if not master.startswith(STANDALONE):
        return []
    found = [each.rpartition(":") for each in master.removeprefix(STANDALONE).split(",")]
    return [(host.strip("[]"), int(port)) for host, _, port in found if host and port.isdigit()]


def check_reachable(master: str, *, seconds: float = SECONDS) -> None:
    """Refuses a standalone cluster none of whose masters answers: Spark would try for a minute, and say less."""
    troubles = []
    for host, port in addresses(master):
        try:
            with closing(socket.create_connection((host, port), timeout=seconds)):
                return
        except OSError as error:
            troubles.append(f"{host}:{port} says: {error.strerror or error}.")
    if troubles:
        raise EngineError(
            f"the master at {master} cannot be reached",
            detail=" ".join(troubles),
            hint="Is it running, and is this its address? Its page and its output name it. To start one: make cluster",
        )
