"""A key that is excised is nowhere any more: not in the log, not in a checkpoint, not in a store."""

import json
import os
import shutil
import zipfile
from collections.abc import Iterator
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.app import excising
from penstock.app.excising import excise
from penstock.engine.topics import ensure_sources
from penstock.log import Log
from penstock.model import load_pipeline
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


FIRST = """
    CREATE STREAM people (name STRING, city STRING);
    CREATE STREAM visits (id BIGINT, city STRING);
    CREATE VIEW neighbours AS SELECT name, p.city, count(*) AS n FROM people p JOIN visits v ON p.city = v.city
      GROUP BY name, p.city;
    CREATE VIEW everybody WITH (store = 'files') AS SELECT name, city FROM people;
"""
SECOND = """
    CREATE STREAM visits (id BIGINT, city STRING);
    CREATE VIEW by_city AS SELECT city, count(*) AS visits FROM visits GROUP BY city;
"""


@pytest.mark.spark
@pytest.mark.timeout(600)  # it is started three times
def test_what_a_pipeline_kept_of_the_key_before_it_was_changed_goes(shop: Shop) -> None:
    home, file = shop.folder / "shop" / ".penstock", shop.folder / "shop" / "pipeline.sql"
    file.write_text(FIRST)
    with Log.open(home / "log") as log:
        ensure_sources(log, load_pipeline(file.parent))
        others = [{"name": f"somebody who is called {at:04}", "city": "Rome"} for at in range(300)]
        log.append("people", [*others[:150], {"name": KEY, "city": "Rome"}, *others[150:]])
        log.append("visits", [{"id": 1, "city": "Rome"}, {"id": 2, "city": "Oslo"}])
    shop.run("run", "shop", "--once")
    shutil.copytree(home / "lineages" / "1", shop.folder / "before")
    file.write_text(SECOND)
    shop.run("reset", "shop")
    shop.run("run", "shop", "--once")
    shutil.move(shop.folder / "before", home / "lineages" / "1")  # as when a run dies before it could remove it
    with Log.open(home / "log", create=False) as log:
        log.forget([topic.name for topic in log.topics() if topic.name.startswith("shop.1.")])  # as retention does
    assert {path.split("/")[0] for path in with_key(home)} == {"log", "views.sqlite", "lineages"}

    with refused("app/excising_without_a_former_reader"):
        excise(home / "log", "people", {"name": KEY}, [], by="ann", told=print)
    assert "log" in {path.split("/")[0] for path in with_key(home)}
    said: list[str] = []
    excise(home / "log", "people", {"name": KEY}, [file.parent], by="ann", told=said.append)
    assert said == ['taking it out of topic "people"', 'removing what pipeline "shop" had before']
    assert with_key(home) == set()
    assert sorted(path.name for path in (home / "lineages").iterdir()) == ["2"]
    rows = shop.run("view", "by_city", "--pipeline", "shop", "--format", "json").splitlines()
    assert sorted(json.loads(row)["city"] for row in rows) == ["Oslo", "Rome"]


def announce(log: Log, pipeline: str, reads: list[str], *, lineage: int = 1) -> None:
    note = {"pipeline": pipeline, "current": lineage, "views": {}, "reads": reads}
    log.append_all({}, producer=pipeline, sequence=lineage, note=note)


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


@pytest.fixture
def mall(tmp_path: Path) -> Path:
    """A pipeline that has read answers of another one, and was changed since; in its log, KEY is everywhere."""
    (tmp_path / "mall").mkdir()
    (tmp_path / "mall" / "pipeline.sql").write_text(SECOND)
    with Log.open(tmp_path / "log") as log:
        for topic in ("people", "shop.1.visitors", "mall.1.guests"):
            log.create_topic(topic, "name STRING", key="name")
            log.append(topic, [{"name": KEY}])
        announce(log, "shop", ["people"])
        announce(log, "mall", ["shop.1.visitors"])
        announce(log, "mall", ["visits"], lineage=2)
    return tmp_path / "mall"


def test_what_others_have_read_of_it_before_they_were_changed_goes_too(tmp_path: Path, mall: Path) -> None:
    asked: dict[str, Any] = {"ended": ["shop"], "by": "ann", "told": print}
    with refused("app/excising_without_a_former_reader_of_answers"):
        excise(tmp_path / "log", "people", {"name": KEY}, [], **asked)
    assert with_key(tmp_path / "log")
    excise(tmp_path / "log", "people", {"name": KEY}, [mall], **asked)
    assert with_key(tmp_path) == set()


@pytest.mark.parametrize(("step", "nth"), [("_forget", 1), ("_purge", 1), ("_forget", 2), ("older", 1)])
def test_ended_in_the_middle_it_is_done_by_doing_it_again(
    step: str, nth: int, tmp_path: Path, mall: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, act = count(1), getattr(excising, step)

    def acted(*words: Any, **more: Any) -> Any:
        if next(calls) == nth:
            raise KeyboardInterrupt
        return act(*words, **more)

    (mall / ".penstock" / "lineages" / "1").mkdir(parents=True)
    (mall / ".penstock" / "lineages" / "1" / "state").write_text(KEY)
    asked: dict[str, Any] = {"ended": ["shop"], "by": "ann", "told": print}
    monkeypatch.setattr(excising, step, acted)
    with pytest.raises(KeyboardInterrupt):
        excise(tmp_path / "log", "people", {"name": KEY}, [mall], **asked)
    assert with_key(tmp_path)
    excise(tmp_path / "log", "people", {"name": KEY}, [mall], **asked)
    assert with_key(tmp_path) == set()
