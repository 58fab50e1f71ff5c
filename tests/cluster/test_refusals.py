"""What is told of a cluster that gives no executors, and of executors that do not see what the driver sees; and which
Python they start.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from services.spark import SparkCluster
from tests.texts import assert_golden

PROGRAM = """
import os, sys
from pathlib import Path
from types import SimpleNamespace
from pyspark import SparkContext
from penstock.engine.executors import check_sees_checkpoints, check_sees_log
from penstock.engine.session import session
from penstock.errors import EngineError

def told(action):
    try:
        action()
    except EngineError as error:
        print(error)

def large():
    with session("large", master=sys.argv[1], conf={
            "spark.executor.memory": "900g", "spark.executor.cores": "3", "spark.penstock.patience": "2 seconds"}):
        pass

told(large)
with session("seeing", master=sys.argv[1]) as spark:
    print(*spark.sparkContext.parallelize([0], 1).map(lambda _: os.environ.get("WHOSE_PYTHON")).collect())
    shared = Path(sys.argv[2], "identity.json")
    shared.write_text("the same for all")
    check_sees_checkpoints(spark, shared, "shop")
    check_sees_log(spark, SimpleNamespace(folder=shared.parent))
    # What lies under /proc/self is another file in every process, as on machines that share nothing.
    told(lambda: check_sees_checkpoints(spark, Path("/proc/self/stat"), "shop"))
    shared.unlink()
    shared.symlink_to(f"/proc/self/task/{SparkContext._gateway.proc.pid}/stat")
    told(lambda: check_sees_log(spark, SimpleNamespace(folder=shared.parent)))
"""


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_executors_that_do_not_come_and_folders_that_they_do_not_see(cluster: SparkCluster, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nWHOSE_PYTHON=theirs exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, cluster.url, str(tmp_path)],
        env=os.environ | {"PYSPARK_PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.strip().replace(cluster.url, "MASTER").replace(str(tmp_path), "FOLDER")
    assert_golden("engine/cluster-refusals", said)
