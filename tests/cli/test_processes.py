"""What only a process of its own can show: pipes, signals, terminals."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pytest

from penstock.log import Log

MAIN = [sys.executable, "-c", "from penstock.cli import main; main()"]
PENSTOCK = [*MAIN, "log"]
NO_JAVA = """\
Java was not found
  detail: JAVA_HOME is /nowhere, and there is no bin/java in it.
  hint:   Install a Java runtime (17 or 21); put it on the PATH or name it in JAVA_HOME.
"""
Process = subprocess.Popen[str]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Log]:
    monkeypatch.setenv("PENSTOCK_LOG", str(tmp_path / "log"))
    with Log.open(tmp_path / "log") as log:
        log.create_topic("events", "id BIGINT")
        yield log


def started(*arguments: str, **streams: int | IO[str]) -> Process:
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.Popen([*PENSTOCK, *arguments], text=True, **pipes)


def lines(process: Process, count: int) -> list[int]:
    """The ids in the next lines of its output."""
    assert process.stdout is not None
    return [json.loads(process.stdout.readline())["id"] for _ in range(count)]


def ended(process: Process) -> tuple[int, str]:
    """Its exit code and what it said, soon."""
    _, err = process.communicate(timeout=20)
    return process.returncode, err


def test_tail_follows_until_it_is_interrupted(log: Log) -> None:
    log.append("events", [{"id": 1}])
    with started("tail", "events", "--from-start") as tail:
        assert lines(tail, 1) == [1]
        log.append("events", [{"id": 2}, {"id": 3}])
        assert lines(tail, 2) == [2, 3]
        tail.send_signal(signal.SIGINT)
        assert ended(tail) == (0, "")


def test_tail_shows_columns_that_are_added_while_it_runs(log: Log) -> None:
    log.append("events", [{"id": 1}])
    with started("tail", "events", "--from-start") as tail:
        assert lines(tail, 1) == [1]
        log.change_schema("events", "id BIGINT, name STRING")
        log.append("events", [{"id": 2, "name": "x"}])
        assert tail.stdout is not None
        assert tail.stdout.readline() == '{"id": 2, "name": "x"}\n'
        tail.send_signal(signal.SIGINT)
        assert ended(tail) == (0, "")


def test_tail_writes_csv_and_arrow_too(log: Log) -> None:
    log.append("events", [{"id": 1}])
    with started("tail", "events", "--from-start", "--format", "csv") as tail:
        assert tail.stdout is not None
        assert [tail.stdout.readline() for _ in range(2)] == ["id,_deleted\n", "1,false\n"]
        log.append("events", [{"id": 2}])
        assert tail.stdout.readline() == "2,false\n"
        tail.send_signal(signal.SIGINT)
        assert ended(tail) == (0, "")
    with started("tail", "events", "--from-start", "--format", "arrow") as tail:
        assert tail.stdout is not None
        stream = pa.ipc.open_stream(tail.stdout.buffer)  # type: ignore[attr-defined]
        assert stream.read_next_batch().column("id").to_pylist() == [1]
        tail.send_signal(signal.SIGINT)
        assert tail.wait(timeout=20) == 0


def test_tail_ends_when_its_reader_leaves(log: Log) -> None:
    log.append("events", [{"id": 1}])
    with started("tail", "events", "--from-start") as tail:
        assert tail.stdout is not None
        tail.stdout.readline()
        tail.stdout.close()
        assert tail.wait(timeout=20) == 0
        assert tail.stderr is not None
        assert tail.stderr.read() == ""


def test_read_ends_quietly_when_its_reader_leaves(log: Log) -> None:
    log.append("events", [{"id": number} for number in range(100_000)])
    with started("read", "events") as read:
        assert lines(read, 1) == [0]
        assert read.stdout is not None
        read.stdout.close()
        assert read.wait(timeout=20) == 0
        assert read.stderr is not None
        assert read.stderr.read() == ""


def test_what_comes_slowly_is_appended_as_it_comes(log: Log) -> None:
    with started("append", "events", stdin=subprocess.PIPE) as append:
        assert append.stdin is not None
        for number in (1, 2):
            append.stdin.write(f'{{"id": {number}}}\n')
            append.stdin.flush()
            entry = next(log.tail("events", start=number - 1))
            assert entry.value == {"id": number}
        append.stdin.close()
        append.stdin = None
        assert ended(append) == (0, '2 records appended to "events"\n')


def test_an_interrupted_append_says_what_was_written(log: Log) -> None:
    with started("append", "events", stdin=subprocess.PIPE) as append:
        assert append.stdin is not None
        append.stdin.write('{"id": 1}\n')
        append.stdin.flush()
        next(log.tail("events", start=0))
        append.send_signal(signal.SIGINT)
        assert ended(append) == (130, 'interrupted: 1 record appended to "events"\n')


def shown(terminal: int) -> str:
    """Everything that was written to the terminal, once its other end is closed."""
    data = b""
    while True:
        try:
            more = os.read(terminal, 65536)
        except OSError:  # Linux says so that nobody has the other end any more
            more = b""
        if not more:
            os.close(terminal)
            return data.decode()
        data += more


def test_a_terminal_shows_how_far_an_append_is(log: Log, tmp_path: Path) -> None:
    source = tmp_path / "events.jsonl"
    source.write_text("".join(f'{{"id": {number}}}\n' for number in range(2000)))
    terminal, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    command = [*PENSTOCK, "append", "events", "--from", str(source), "--batch-size", "500"]
    with subprocess.Popen(command, stdout=slave, stderr=slave, env=environment) as append:
        os.close(slave)
        text = shown(terminal)
    assert append.returncode == 0
    assert "appending to events" in text and "2,000 records, " in text
    assert text.rstrip().endswith('2,000 records appended to "events"')


def test_a_terminal_shows_how_far_a_copy_is(log: Log, tmp_path: Path) -> None:
    for first in range(0, 2000, 500):
        log.append("events", [{"id": number} for number in range(first, first + 500)])
    terminal, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    command = [*PENSTOCK, "copy", str(log.folder), str(tmp_path / "other"), "events"]
    with subprocess.Popen(command, stdout=slave, stderr=slave, env=environment) as copy:
        os.close(slave)
        text = shown(terminal)
    assert copy.returncode == 0
    assert "events" in text and "2,000 records, " in text
    assert text.rstrip().endswith("events: 2,000 records copied")


def test_without_a_terminal_an_append_says_only_what_it_did(log: Log, tmp_path: Path) -> None:
    source = tmp_path / "events.jsonl"
    source.write_text('{"id": 1}\n{"id": 2}\n')
    with started("append", "events", "--from", str(source)) as append:
        assert ended(append) == (0, '2 records appended to "events"\n')


def test_arrow_is_not_written_to_a_terminal(log: Log) -> None:
    terminal, slave = pty.openpty()
    with started("read", "events", "--format", "arrow", stdout=slave) as read:
        code, err = ended(read)
    os.close(slave)
    os.close(terminal)
    assert (code, err.splitlines()[0]) == (1, "Arrow is not for terminals")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /dev/full")
def test_an_output_that_cannot_be_written_is_an_error(log: Log) -> None:
    log.append("events", [{"id": 1}])
    with open("/dev/full", "w") as full, started("read", "events", stdout=full) as read:
        assert ended(read)[0] != 0


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pipeline on a machine without Java."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    (tmp_path / "pipeline.sql").write_text("CREATE STREAM orders (id BIGINT);")
    return tmp_path


@pytest.mark.parametrize("command", ["run", "explain", "reset"])
def test_a_terminal_shows_that_spark_is_starting(pipeline: Path, command: str) -> None:
    terminal, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen([*MAIN, command], stdout=slave, stderr=slave, env=environment, cwd=pipeline) as started:
        os.close(slave)
        text = shown(terminal)
    assert started.returncode == 1
    assert 0 <= text.find("starting Spark") < text.find("Java was not found")


@pytest.mark.parametrize("command", ["run", "explain", "reset"])
def test_elsewhere_only_the_error_is_shown_and_nothing_is_made(pipeline: Path, command: str) -> None:
    done = subprocess.run([*MAIN, command], capture_output=True, text=True, cwd=pipeline, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", NO_JAVA)
    assert [path.name for path in pipeline.iterdir()] == ["pipeline.sql"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_terminal_shows_at_once_that_an_interruption_was_noticed(number: signal.Signals) -> None:
    program = """
import sys, time, typer
from penstock.cli.working import interruptible
try:
    with interruptible():
        try:
            print("working", flush=True)
            time.sleep(60)
        finally:
            print("left", flush=True)
except typer.Exit as end:
    sys.exit(end.exit_code)
"""
    terminal, slave = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", program], stdout=slave, stderr=slave) as working:
        os.close(slave)
        assert os.read(terminal, 100).decode().split() == ["working"]
        working.send_signal(number)
        assert shown(terminal).split() == ["stopping", "left"]
    assert working.returncode == 130
