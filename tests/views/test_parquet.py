"""ParquetStore: what lies in its folder, and what it refuses."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import ViewError
from penstock.log import Log
from penstock.schema import arrow_schema, parse_schema
from penstock.views import Position, Step, catch_up, parquet
from penstock.views import output as writing
from penstock.views.folders import folder_names, parted
from penstock.views.output import Output
from penstock.views.parquet import ParquetStore, files_of
from penstock.views.step import Change, Lineage, View
from tests.log.disks import QuickDisk
from tests.texts import refused
from tests.views.files import contents_of, read
from tests.views.shop import FILES, VIEWS, Declared, Shop, Story, counted, folded, name, spend

WIDE = """
    yes BOOLEAN, tiny TINYINT, small SMALLINT, n INT, big BIGINT, f FLOAT, d DOUBLE, price DECIMAL(10,2),
    huge DECIMAL(38,9), s STRING, b BINARY, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, l ARRAY<ARRAY<INT>>,
    m MAP<STRING, STRUCT<x: DATE>>
"""


def opened(path: Path) -> ParquetStore:
    return ParquetStore(path, disk=QuickDisk())


def one_view(schema: str, partition_by: Sequence[str] = ()) -> Lineage:
    view = View("v", parse_schema(schema), (), "files", tuple(partition_by))
    return Lineage("p", 1, 0, (view,))


def step(lineage: Lineage, frame: int, rows: Sequence[dict[str, Any]]) -> Step:
    fields = list(arrow_schema(lineage.views[0].schema))
    new = pa.array(rows, pa.struct(fields))
    change = Change("v", pa.nulls(len(rows), new.type), new)
    return Step(Position("log", 1, frame, frame), (change,))


def filled(path: Path, schema: str, partition_by: Sequence[str], *calls: Sequence[dict[str, Any]]) -> Path:
    """The folder of the one view of a store that took some calls."""
    lineage, store = one_view(schema, partition_by), opened(path)
    store.switch(lineage, [Step(Position("log", 1, 0))])
    for frame, rows in enumerate(calls, 1):
        store.apply([step(lineage, frame, rows)])
    return path / "current" / "v"


def files(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*.parquet"))


def test_files_lie_in_folders_named_after_values(path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"day": date(2024, 1, 31), "minute": "12:05", "n": 1},
        {"day": date(2024, 2, 1), "minute": None, "n": 2},
    ]
    folder = filled(path, "day DATE, minute STRING, n INT", ["day", "minute"], rows, rows[:1], [])
    assert files(folder) == [
        "day=2024-01-31/minute=12%3A05/000000000001-0.parquet",
        "day=2024-01-31/minute=12%3A05/000000000002-0.parquet",
        "day=2024-02-01/minute=__HIVE_DEFAULT_PARTITION__/000000000001-1.parquet",
    ]
    assert pq.read_schema(folder / files(folder)[0]).names == ["n"]
    assert files_of(path, "V") == folder
    assert files_of(path, "w") is None


@pytest.mark.parametrize(
    ("type_", "values", "names"),
    [
        (
            "STRING",
            ["a b", "50%", "a/b", "..", "é", "{x}", "\n", ""],
            ["a b", "50%25", "a%2Fb", "..", "é", "%7Bx}", "%0A"],
        ),
        ("BOOLEAN", [True, False, None], ["true", "false"]),
        ("BIGINT", [-(2**63), 0, None], ["-9223372036854775808", "0"]),
        ("DATE", [date(1, 1, 1), date(9999, 12, 31), None], ["0001-01-01", "9999-12-31"]),
    ],
)
def test_names_of_folders_are_those_of_spark(type_: str, values: list[Any], names: list[str]) -> None:
    column = parse_schema(f"`a:b` {type_}").columns[0]
    found = folder_names(column.name, column.type, pa.array(values, arrow_schema(parse_schema(f"x {type_}"))[0].type))
    assert found == [f"a%3Ab={each}" for each in [*names, "__HIVE_DEFAULT_PARTITION__"]]


def test_a_string_that_is_not_utf8_names_a_folder(path: Path) -> None:
    lineage, store = one_view("s STRING, n INT", ["s"]), opened(path)
    strings = pa.array([b"\xff", b"a"], pa.binary()).view(pa.string())
    new = pa.StructArray.from_arrays([strings, pa.array([1, 2], pa.int32())], names=["s", "n"])
    store.switch(lineage, [Step(Position("log", 1, 0))])
    store.apply([Step(Position("log", 1, 1, 1), (Change("v", pa.nulls(2, new.type), new),))])
    found = [os.fsencode(each.parent.name) for each in (path / "current" / "v").rglob("*.parquet")]
    assert sorted(found) == [b"s=\xff", b"s=a"][::-1]


def test_values_of_every_type_come_back(path: Path) -> None:
    row = {
        **{"yes": True, "tiny": -128, "small": 300, "n": 2**31 - 1, "big": -(2**63), "f": float("inf"), "d": -0.0},
        **{"price": "0.10", "huge": "-12345678901234567890123456789.000000001", "s": "\U0001f600", "b": b"\xff\x00"},
        **{"day": date(1, 1, 1), "at": datetime(9999, 12, 31, 23, 59, 59, 999999), "local": datetime(1, 1, 1)},
        **{"l": [[1, None], None, []], "m": {"a": {"x": date(2024, 2, 29)}, "b": None}},
    }
    schema = arrow_schema(parse_schema(WIDE))
    row["price"], row["huge"] = (pa.scalar(row[c]).cast(schema.field(c).type).as_py() for c in ("price", "huge"))
    rows = [row, dict.fromkeys(row)]
    filled(path, WIDE, [], rows)
    found = read(path, "v", Declared(WIDE))
    assert found == pa.Table.from_pylist(rows, schema=schema)
    assert str(found.column("d")[0].as_py()) == "-0.0"


def test_frames_of_one_call_share_files(path: Path) -> None:
    lineage, store = one_view("k INT, n INT", ["k"]), opened(path)
    store.switch(lineage, [Step(Position("log", 1, 0))])
    store.apply([step(lineage, frame, [{"k": n % 2, "n": n} for n in range(3)]) for frame in (1, 2, 3)])
    assert files(path / "current" / "v") == ["k=0/000000000003-0.parquet", "k=1/000000000003-1.parquet"]
    assert store.position() == Position("log", 1, 3, 3)


def test_a_large_call_is_written_piece_by_piece_with_few_open_files(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "ROWS", 1000)
    monkeypatch.setattr(writing, "OPEN", 4)
    most = {"open": 0, "waiting": 0}
    add = Output.add

    def watched(self: Output, view: View, rows: pa.StructArray) -> None:
        add(self, view, rows)
        most["open"], most["waiting"] = max(most["open"], len(self._open)), max(most["waiting"], self._rows)

    monkeypatch.setattr(Output, "add", watched)
    rows = [{"k": int(k), "n": n} for n, k in enumerate(np.random.default_rng(1).integers(0, 10, 20_000))]
    lineage, store = one_view("k INT, n INT", ["k"]), opened(path)
    store.switch(lineage, [Step(Position("log", 1, 0))])
    changes = tuple(step(lineage, 1, rows[at : at + 300]).changes[0] for at in range(0, len(rows), 300))
    store.apply([Step(Position("log", 1, 1, 1), changes)])
    assert most["open"] == 4
    assert 700 <= most["waiting"] < 1000
    assert contents_of(path, "v", Declared("k INT, n INT", partition_by=("k",))) == counted(rows)


def test_very_many_folders_are_told_apart(path: Path) -> None:
    rows = [{"a": n % 300, "b": n // 300, "n": n} for n in range(90_000)]
    lineage = one_view("a INT, b INT, n INT", ["a", "b"])
    table = pa.Table.from_pylist(rows, schema=arrow_schema(lineage.views[0].schema))
    parts = list(parted_numbers(lineage.views[0], table))
    assert len(parts) == 90_000
    assert all(folder == f"a={n % 300}/b={n // 300}" for folder, n in parts)


def parted_numbers(view: View, table: pa.Table) -> Iterator[tuple[str, int]]:
    for folder, part in parted(view, table):
        (number,) = part.column("n").to_pylist()
        yield folder, number


def test_a_store_of_files_is_told_only_of_its_views(log: Log, path: Path) -> None:
    views = {**FILES, "other": VIEWS["names"], "topic": Declared("n INT", store="topic")}
    shop = Shop(log, views=views)
    shop.announce()
    shop.batch(names=[(None, name("ann"))], other=[(None, name("bob"))], topic=[(None, {"n": 1})])
    shop.batch(other=[(name("bob"), None)])
    catch_up(log, "shop", opened(path), kept="files")
    assert sorted(each.name for each in (path / "current").iterdir()) == [
        "_penstock.json",
        "_staging",
        "names",
        "spend",
    ]
    assert contents_of(path, "names", FILES["names"]) == counted([name("ann")])


def test_what_a_call_that_died_has_left_is_removed(path: Path) -> None:
    filled(path, "n INT", [], [{"n": 1}])
    (path / "1" / "_staging" / "000000000002-0.parquet").write_bytes(b"half of it")
    (path / "2" / "v").mkdir(parents=True)
    opened(path)
    assert sorted(each.name for each in path.iterdir()) == [".lock", "1", "current"]
    assert list((path / "1" / "_staging").iterdir()) == []
    assert contents_of(path, "v", Declared("n INT")) == counted([{"n": 1}])


def test_files_may_be_taken_away(log: Log, path: Path) -> None:
    shop = Shop(log, views=FILES)
    shop.announce()
    shop.batch(names=[(None, name("ann"))])
    catch_up(log, "shop", opened(path), kept="files")
    shutil.rmtree(path / "current" / "names")
    shop.batch(names=[(None, name("bob"))])
    catch_up(log, "shop", opened(path), kept="files")
    assert contents_of(path, "names", FILES["names"]) == counted([name("bob")])


def test_a_store_that_was_taken_away_fills_itself_while_it_is_followed(log: Log, path: Path) -> None:
    shop, store = Shop(log, views=FILES), opened(path)
    shop.announce()
    story = Story(shop, seed=1)
    for _ in range(3):
        story.go_on(2)
        catch_up(log, "shop", store, kept="files")
        assert contents_of(path, "names", FILES["names"]) == folded(log, shop.topic("names"))
        shutil.rmtree(path)


def test_two_followers_of_one_store_do_no_harm(log: Log, path: Path) -> None:
    shop = Shop(log, views=FILES)
    shop.announce()
    story, one, other = Story(shop, seed=2), opened(path), opened(path)
    for store in (one, other, other, one, one):
        story.go_on(3)
        catch_up(log, "shop", store, kept="files")
        assert contents_of(path, "names", FILES["names"]) == folded(log, shop.topic("names"))


# What is refused


def test_a_row_that_leaves_is_refused(log: Log, path: Path) -> None:
    shop, store = Shop(log, views=FILES), opened(path)
    shop.announce()
    shop.batch(spend=[(None, spend("Bern", 1))])
    frame = shop.batch(spend=[(spend("Bern", 1), spend("Bern", 2))])
    with refused("views/files-row-leaves"):
        catch_up(log, "shop", store, kept="files", together=1)
    assert frame == 4
    position = store.position()
    assert position is not None
    assert position.frame == frame - 1


def test_a_value_that_is_too_long_for_a_folder_is_refused(path: Path) -> None:
    with refused("views/files-long-value"):
        filled(path, "s STRING, n INT", ["s"], [{"s": "é" * 200, "n": 1}])
    assert files(path) == []


def test_a_damaged_manifest_is_told(path: Path) -> None:
    filled(path, "n INT", [], [{"n": 1}])
    manifest = path / "1" / "_penstock.json"
    text = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**text, "format": 9}))
    with refused("views/files-format", path=path):
        opened(path)
    manifest.write_text("{")
    with refused("views/files-damaged", path=path):
        opened(path)


def test_a_store_that_somebody_else_holds_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "PATIENCE_SECONDS", 0.05)
    store = opened(path)
    with open(path / ".lock") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with refused("views/files-locked", path=path):
            store.apply([])


def test_a_store_without_a_lineage_takes_no_steps(path: Path) -> None:
    with pytest.raises(ViewError, match="the store has no views yet"):
        opened(path).apply([])


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with refused("views/files-no-folder", folder=tmp_path):
        opened(tmp_path / "file" / "files")
