"""Deletions that find no row: counted, and kept with the batch that met them, once."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from penstock.app.progress import Progress
from penstock.cli.tellers import progress_text
from penstock.engine.run import prepared
from penstock.log import Record
from tests.cli.conftest import Penstock
from tests.engine.conftest import Bench

READINGS = """
    CREATE TABLE readings (sensor STRING, x BIGINT) WITH (partitions = 3);
    CREATE TABLE notes (text STRING);
    CREATE VIEW sums AS SELECT sensor, sum(x) AS s, count(*) AS n FROM readings GROUP BY sensor;
    CREATE VIEW texts AS SELECT text FROM notes;
"""
pytestmark = pytest.mark.spark


def taken(**row: Any) -> Record:
    return Record(row, deleted=True)


def letters(bench: Bench, lineage: int = 1) -> list[dict[str, Any]]:
    return [dict(entry.value) for entry in bench.log.read(f"test.{lineage}.dead-letters")]  # type: ignore[arg-type]


def found(bench: Bench, relation: str) -> list[tuple[int, int, dict[str, Any]]]:
    """Where the records lie that the letters tell of, and their rows."""
    mine = [letter for letter in letters(bench) if letter["relation"] == relation]
    return sorted((each["partition"], each["offset"], json.loads(each["row"])) for each in mine)


def lost(bench: Bench, topic: str, rows: Sequence[dict[str, Any]]) -> list[tuple[int, int, dict[str, Any]]]:
    """Where the last deletions of these rows lie."""
    at = {json.dumps(entry.value): entry for entry in bench.log.read(topic) if entry.deleted}
    return sorted((at[json.dumps(row)].partition, at[json.dumps(row)].offset, row) for row in rows)


def test_a_deletion_that_finds_nothing_is_kept_with_its_place_and_its_row(bench: Callable[..., Bench]) -> None:
    made = bench(READINGS)
    a, b = {"sensor": "a", "x": 1}, {"sensor": None, "x": 2}
    made.append({"readings": [a, taken(**a), taken(**a), taken(**b), b], "notes": [{"text": "x"}]})
    made.drain()
    made.check()
    assert found(made, "readings") == lost(made, "readings", [a, b])
    assert {letter["reason"] for letter in letters(made)} == {"a deletion that finds no equal row"}
    assert [(done.letters, dict(done.changes)) for done in made.batches] == [(2, {"sums": 1, "texts": 1})]


def test_letters_are_there_once_after_restarts_and_when_a_batch_is_run_again(bench: Callable[..., Bench]) -> None:
    made = bench(READINGS)
    for number in range(3):
        made.append({"readings": [taken(sensor="a", x=number)], "notes": [taken(text="x"), {"text": "y"}]})
        made.drain()
        made.start()
    before = letters(made)
    (made.ready.lineage.checkpoint / "commits" / "2").unlink()
    made.drain()
    assert (made.batches[-1].batch, made.batches[-1].repeated, made.batches[-1].letters) == (2, True, 2)
    assert letters(made) == before and len(before) == 6
    made.check()


def test_the_same_batch_gives_the_same_letters_in_the_same_order(bench: Callable[..., Bench]) -> None:
    one, two = bench(READINGS), bench(READINGS)
    two.spark.conf.set("spark.sql.shuffle.partitions", "5")
    two.ready = prepared(two.spark, two.pipeline, two.log, two.home, anew=True)
    for each in (one, two):
        each.append({"readings": [taken(sensor=f"s{n % 7}", x=n) for n in range(50)], "notes": [taken(text="x")] * 3})
        each.drain()
    assert letters(one) == letters(two, lineage=2)
    assert len(letters(one)) == 53


def test_a_row_of_any_type_is_told_as_json(bench: Callable[..., Bench]) -> None:
    made = bench("""
        CREATE TABLE odd (
          d DECIMAL(20,2), t TIMESTAMP, x DOUBLE, b BINARY, a ARRAY<INT>, s STRUCT<i: INT, `j k`: DATE>);
        CREATE VIEW n AS SELECT count(*) AS n FROM odd;
    """)
    at = datetime(2024, 1, 31, 12, 0, 0, 123456, UTC)
    row = {
        "d": Decimal("1.50"),
        "t": at,
        "x": float("nan"),
        "b": b"\x00\xff",
        "a": [1, None],
        "s": {"i": 1, "j k": None},
    }
    made.append({"odd": [taken(**row)]})
    made.drain()
    assert json.loads(letters(made)[0]["row"], parse_float=str) == {
        "d": "1.50",
        "t": "2024-01-31T12:00:00.123456Z",
        "x": "NaN",
        "b": "AP8=",
        "a": [1, None],
        "s": {"i": 1, "j k": None},
    }


def test_the_topic_is_there_where_a_bag_is_read(bench: Callable[..., Bench]) -> None:
    made = bench(
        "CREATE TABLE t (id BIGINT PRIMARY KEY); CREATE TABLE unread (x INT); CREATE VIEW v AS SELECT * FROM t;"
    )
    made.drain()
    assert "test.1.dead-letters" not in [topic.name for topic in made.log.topics()]


def test_they_can_be_read_from_the_command_line(
    bench: Callable[..., Bench], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = bench(READINGS)
    made.append({"notes": [taken(text="it's gone")]})
    made.drain()
    ran = Penstock(tmp_path, monkeypatch)("read", "test.1.dead-letters", "--log", made.log.folder)
    assert json.loads(ran.out) == letters(made)[0]


def test_progress_tells_of_them() -> None:
    told = progress_text(Progress(3, 1, frames=1, records=2, seconds=1.0, lag=0, changes={"v": 1}, letters=1234))
    assert told == "batch 3: 2 records in 1 frame, 2/s; changes: v 1; dead letters: 1,234; lag: 0 frames"
