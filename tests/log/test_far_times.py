"""Times outside of the years 1 to 9999: refused, unless whoever appends must keep what was computed."""

from pathlib import Path

import pyarrow as pa
import pytest

from penstock.errors import LogError, SchemaError
from penstock.log import Log

INSIDE = pa.struct([("n", pa.int32()), ("d", pa.date32())])
FAR = pa.array([1 << 60, None], pa.int64()).cast(pa.timestamp("us", "UTC"))


def rows(log: Log) -> dict[str, pa.Table]:
    log.create_topic("t", "at TIMESTAMP, s STRUCT<n: INT NOT NULL, d: DATE>")
    days = pa.array([1 << 30, None], pa.int32()).cast(pa.date32())
    inside = pa.StructArray.from_arrays([pa.array([1, 2], pa.int32()), days], fields=list(INSIDE))
    return {"t": pa.table({"at": FAR, "s": inside})}


def test_they_are_refused_by_default_and_kept_when_asked_for(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        with pytest.raises(SchemaError, match='field "at" of record 0'):
            log.append_all(rows(log))
        log.append_all(rows(log), far_times=True)
        log.seal()
        (batch,) = log.batches("t", columns=["at", "s"])
        assert batch.column("at").cast("int64").to_pylist() == [1 << 60, None]
        assert batch.column("s").field("d").cast("int32").to_pylist() == [1 << 30, None]
        with pytest.raises(LogError, match='a value of column "at" of topic "t" has no form in Python'):
            list(log.read("t"))


def test_staged_files_may_hold_them_too(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        table, path = rows(log)["t"], log.staging_path()
        with pa.ipc.new_file(str(path), table.schema) as file:
            file.write_table(table)
        with pytest.raises(SchemaError, match='field "at" of record 0'):
            log.append_files({("t", 0): [path]})
        log.append_files({("t", 0): [path]}, far_times=True)
        assert log.ends("t") == (2,)


def test_what_is_not_null_is_looked_after_all_the_same(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        bad = rows(log)["t"].set_column(1, "s", pa.array([{"n": 1, "d": None}, {"n": None, "d": None}], INSIDE))
        with pytest.raises(SchemaError, match='field "s" of record 1'):
            log.append_all({"t": bad}, far_times=True)
