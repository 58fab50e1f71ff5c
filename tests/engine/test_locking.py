"""A pipeline's folder and its checkpoint have one holder at a time, who is named to those who wait in vain."""

import fcntl
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from socket import gethostname

import pytest

from penstock.engine.locking import hold, locked
from penstock.errors import EngineError
from tests.engine.conftest import Bench

HOLDER = """
import sys
from pathlib import Path
from penstock.engine.locking import locked
with locked(Path(sys.argv[1]), "shop"):
    print("held", flush=True)
    sys.stdin.read()
"""
SHORT = timedelta(milliseconds=50)


def test_a_folder_that_another_process_works_on_is_waited_for(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(EngineError) as error, locked(tmp_path, "shop", patience=SHORT):
            pass
        assert error.value.detail == f"Process {holder.pid} on {gethostname()} has not left within 0.05 seconds."
        holder.stdin.close()
        with locked(tmp_path, "shop"):
            holder.wait()


@pytest.mark.spark
def test_a_checkpoint_that_another_java_process_works_on_is_waited_for(bench: Callable[..., Bench]) -> None:
    one = bench("CREATE STREAM orders (id BIGINT); CREATE VIEW total AS SELECT count(*) AS n FROM orders;")
    path = one.ready.lineage.folder / "lock"
    with open(path, "w") as file:  # a lock of this process, which for Java is another one
        fcntl.lockf(file, fcntl.LOCK_EX)
        file.write("4711")
        file.flush()
        with pytest.raises(EngineError) as error:
            hold(one.spark, one.ready.lineage, patience=SHORT)
    assert error.value.detail == "Process 4711 has not left within 0.05 seconds."
    hold(one.spark, one.ready.lineage)
    hold(one.spark, one.ready.lineage)  # it has it already
    with open(path, "r+") as file, pytest.raises(BlockingIOError):
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
