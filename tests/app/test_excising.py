"""A key that is excised is nowhere any more: not in the log, not in a checkpoint, not in a store."""

import json
import os
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.app.excising import excise
from penstock.log import Log
from penstock.views.sinks.delivering import dead_topic
from tests.app.test_pipelines import Shop
from tests.texts import refused

KEY = "qz81-hzkw-0b5c-jx2v-excise-me-pl3m-77ty"
SQL = """
    CREATE STREAM visits (id BIGINT, person STRING);
    CREATE TABLE people (name STRING PRIMARY KEY, city STRING);
    CREATE VIEW visitors AS
      SELECT person, city, count(*) AS visits FROM visits JOIN people ON person = name GROUP BY person, city;
    CREATE VIEW all_visits WITH (store = 'files') AS SELECT id, person FROM visits;
"""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop(tmp_path, f"PENSTOCK_PIPELINES_TEST={os.getpid()}-{tmp_path.name}")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "pipeline.sql").write_text(SQL)
    return shop


def unpacked(path: Path) -> Iterator[bytes]:
    """The bytes of a file, and those that are packed in it."""
    data = path.read_bytes()
    yield data
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(BytesIO(data)) as packed:
            yield from (packed.read(name) for name in packed.namelist())
    for codec in ("lz4", "zstd", "gzip"):
        try:
            with pa.CompressedInputStream(pa.BufferReader(data), codec) as stream:
                yield stream.read()
        except OSError:
            pass


def with_key(folder: Path) -> set[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)) for path in files if any(KEY.encode() in each for each in unpacked(path))}


@pytest.mark.spark
@pytest.mark.timeout(600)  # it is started six times
def test_no_file_holds_the_key_and_the_views_are_computed_without_it(shop: Shop) -> None:
    home = shop.folder / "shop" / ".penstock"
    shop.run("run", "shop", "--once")
    shop.append("people", {"name": KEY, "city": "Rome"}, {"name": "bob", "city": "Oslo"})
    shop.append("visits", {"id": 1, "person": KEY}, {"id": 2, "person": "bob"}, {"id": 3, "person": KEY})
    shop.run("run", "shop", "--once")
    letters = dead_topic("shop", "visitors", "webhook")
    with Log.open(home / "log", create=False) as log:
        log.create_topic(letters, "body STRING")
        log.append(letters, [{"body": KEY}])
    before = with_key(home)
    assert {path.split("/")[0] for path in before} == {"log", "views.sqlite", "lineages", "files"}, before

    said = shop.run(
        "log", "excise", "visits", KEY, "--column", "person", "--pipeline", "shop", "--log", str(home / "log")
    )
    assert said.splitlines()[0] == '2 records gone from topic "visits"'
    shop.run("log", "excise", "people", KEY, "--pipeline", "shop", "--log", str(home / "log"))
    assert with_key(home) == set()
    assert sorted(path.name for path in (home / "lineages").iterdir()) == ["3"]
    rows = shop.run("view", "visitors", "--pipeline", "shop", "--format", "json").splitlines()
    assert [json.loads(row) for row in rows] == [{"person": "bob", "city": "Oslo", "visits": 1}]
    assert all("equal" in line for line in shop.run("verify", "--pipeline", "shop").splitlines())
    assert shop.run("log", "check", "--log", str(home / "log")).endswith("no damage\n")


def announce(log: Log, pipeline: str, reads: list[str]) -> None:
    note = {"pipeline": pipeline, "current": 1, "views": {}, "reads": reads}
    log.append_all({}, producer=pipeline, sequence=1, note=note)


def test_a_pipeline_that_is_not_named_stops_it_before_anything_is_touched(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "pipeline.sql").write_text(SQL)
    with Log.open(tmp_path / "log") as log:
        for topic in ("people", "shop.1.visitors"):
            log.create_topic(topic, "name STRING", key="name")
        log.append("people", [{"name": KEY}])
        announce(log, "shop", ["people", "visits"])
        announce(log, "mall", ["shop.1.visitors"])
    with refused("app/excising_without_a_reader"):
        excise(tmp_path / "log", "people", {"name": KEY}, [], by="ann", told=print)
    with refused("app/excising_what_others_read"):
        excise(tmp_path / "log", "people", {"name": KEY}, [tmp_path / "shop"], by="ann", told=print)
    assert with_key(tmp_path / "log")


def test_of_a_pipeline_that_has_ended_what_it_left_in_the_log_goes(tmp_path: Path) -> None:
    with Log.open(tmp_path / "log") as log:
        for topic in ("people", "shop.1.visitors", "shop.2.visitors", "shopping.1.all"):
            log.create_topic(topic, "name STRING", key="name")
            log.append(topic, [{"name": KEY if topic != "shopping.1.all" else "bob"}])
        announce(log, "shop", ["people", "visits"])
        epoch = log.raise_epoch("pipeline shop")
    done = excise(tmp_path / "log", "people", {"name": KEY}, [], ended=["shop"], by="ann", told=print)
    assert done.records == 1 and with_key(tmp_path / "log") == set()
    with Log.open(tmp_path / "log") as log:
        assert log.readers("people") == [] and len(list(log.read("shopping.1.all"))) == 1
        assert log.epoch("pipeline shop") > epoch
        (header,) = [header for header in log.frames() if header.note.get("current") == 3]
        assert header.note == {"pipeline": "shop", "current": 3, "views": {}, "reads": []}


def test_pipelines_that_have_ended_go_however_they_came_to_the_value(tmp_path: Path) -> None:
    with Log.open(tmp_path / "log") as log:
        for topic in ("people", "shop.1.visitors", "mall.1.guests", "fair.1.guests"):
            log.create_topic(topic, "name STRING", key="name")
            log.append(topic, [{"name": KEY}])
        for name, reads in {"shop": "people", "mall": "shop.1.visitors", "fair": "mall.1.guests"}.items():
            announce(log, name, [reads])
    asked: dict[str, Any] = {"by": "ann", "told": print}
    with refused("app/excising_what_others_read_of_the_ended"):
        excise(tmp_path / "log", "people", {"name": KEY}, [], ended=["shop", "mall"], **asked)
    with refused("app/excising_an_unknown_pipeline"):
        excise(tmp_path / "log", "people", {"name": KEY}, [], ended=["shop", "tent"], **asked)
    excise(tmp_path / "log", "people", {"name": KEY}, [], ended=["shop", "mall", "fair"], **asked)
    assert with_key(tmp_path / "log") == set()
