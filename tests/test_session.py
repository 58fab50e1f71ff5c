"""A session has the kernel and the defaults, and its process ends soon after its work."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from penstock.engine import session
from tests.texts import assert_golden, refused

STATEFUL_QUERY = """
import sys, time
from penstock.engine import session

with session("leaving", master="local[2]") as spark:
    counts = spark.readStream.format("rate").option("rowsPerSecond", 100).load().groupBy("value").count()
    query = (counts.writeStream.format("noop").outputMode("update")
             .option("checkpointLocation", sys.argv[1]).start())
    while not query.recentProgress:
        time.sleep(0.1)
    print("done", flush=True)
    if sys.argv[2:] == ["fail"]:
        raise RuntimeError("on purpose")
"""


def test_a_session_computes(spark: SparkSession) -> None:
    assert spark.range(10).groupBy().sum("id").collect()[0][0] == 45


def test_a_session_keeps_state_in_rocksdb_with_changelogs(spark: SparkSession) -> None:
    state = "spark.sql.streaming.stateStore"
    assert str(spark.conf.get(f"{state}.providerClass")).endswith("RocksDBStateStoreProvider")
    assert spark.conf.get(f"{state}.rocksdb.changelogCheckpointing.enabled") == "true"


def test_a_failing_cast_gives_null(spark: SparkSession) -> None:
    assert spark.sql("SELECT cast('x' AS INT)").collect()[0][0] is None


def test_python_workers_run_this_python(spark: SparkSession) -> None:
    assert spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect() == [sys.executable]


def test_a_second_session_in_the_process_is_refused(spark: SparkSession) -> None:
    with refused("engine/session-twice"), session():
        pass


def test_a_kernel_that_is_not_built_is_missed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys.modules[session.__module__], "KERNEL", tmp_path / "kernel.jar")
    monkeypatch.setattr(SparkContext, "_gateway", None)
    with refused("engine/session-no-kernel", folder=tmp_path), session():
        pass


@pytest.mark.spark
@pytest.mark.parametrize(("ending", "code"), [([], 0), (["fail"], 1)])
def test_a_process_with_a_running_stateful_query_ends_promptly(tmp_path: Path, ending: list[str], code: int) -> None:
    command = [sys.executable, "-c", STATEFUL_QUERY, str(tmp_path / "checkpoint"), *ending]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        finished_at = time.monotonic()
        _, errors = process.communicate(timeout=60)
    assert (said, process.returncode) == ("done\n", code), errors
    assert time.monotonic() - finished_at < 20


@pytest.mark.spark
def test_a_session_that_cannot_start_is_an_error_and_leaves_nothing_behind() -> None:
    program = """
from penstock.engine import session
from penstock.errors import EngineError
for _ in range(2):
    try:
        with session(master="nonsense"):
            pass
    except EngineError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert_golden("engine/session-not-started", done.stdout.rstrip())
    assert ("Master must either be" in done.stderr, "incubator" in done.stderr) == (True, False)


@pytest.mark.spark
def test_a_java_process_that_does_not_answer_is_killed() -> None:
    program = """
import os, signal, time
from datetime import timedelta
from pyspark import SparkContext
from penstock.engine import session
with session(master="local[2]", patience=timedelta(seconds=1)):
    java = SparkContext._gateway.proc
    os.kill(java.pid, signal.SIGSTOP)
    began_at = time.monotonic()
print(java.returncode == -signal.SIGKILL, time.monotonic() - began_at < 10)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "True True\n", done.stderr


@pytest.mark.spark
def test_ctrl_c_while_spark_starts_leaves_no_process() -> None:
    code = "from penstock.engine import session\nwith session('starting'): print('started', flush=True)"
    mark = {"PENSTOCK_TEST": f"ctrl-c {os.getpid()}"}
    process = subprocess.Popen([sys.executable, "-c", code], env=os.environ | mark, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 30
    while len(processes_with(mark)) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == -signal.SIGINT
    while processes_with(mark) and time.monotonic() < until:
        time.sleep(0.05)
    assert processes_with(mark) == []


def processes_with(mark: dict[str, str]) -> list[int]:
    """The processes that were started, directly or not, with this in their environment."""
    [(name, value)] = mark.items()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"{name}={value}".encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found
