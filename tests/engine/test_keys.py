"""Declared keys: a view's changes are a changelog over its key, and two rows under one key stop the batch."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.compile import compiled
from penstock.engine.run import prepared
from penstock.errors import EngineError
from penstock.log import Log, Record
from penstock.model import pipeline_of
from tests.engine.conftest import Bench
from tests.texts import refused

SEATS = """
    CREATE TABLE guests (id BIGINT PRIMARY KEY, seat BIGINT, name STRING, x DOUBLE);
    CREATE STREAM calls (id BIGINT, text STRING);
"""
pytestmark = pytest.mark.spark


def guest(number: int, seat: int | None, name: str = "", x: float = 0.0) -> dict[str, Any]:
    return {"id": number, "seat": seat, "name": name or f"guest {number}", "x": x}


def gone(number: int) -> Record:
    return Record({"id": number}, deleted=True)


def kinds(bench: Bench) -> list[str]:
    return [operator.kind for operator in bench.ready.compiled.graph.operators]


def changes(bench: Bench, view: str, batch: int) -> list[tuple[Any, ...]]:
    """Of a batch: key, the row that left, the row that came."""
    header = bench.log.find("test/1", batch)
    assert header is not None
    found = [each for each in bench.log.read(f"test.1.{view}") if each.place.frame == header.frame]
    rows = [(each.key, each.replaces, None if each.deleted else each.value) for each in found]
    return sorted(rows, key=repr)


def test_rows_that_change_places_within_a_batch_keep_their_keys_apart(bench: Callable[..., Bench]) -> None:
    made = bench(SEATS + "CREATE VIEW seats WITH (key = 'SEAT') AS SELECT seat, name FROM guests;")
    assert kinds(made).count("unique") == 1
    made.append({"guests": [guest(1, 1), guest(2, 2), guest(3, None)]})
    made.drain()
    made.append({"guests": [guest(1, 2), guest(2, 1), gone(3), guest(4, 7), gone(4)]})
    made.drain()
    made.check()
    one, two, three = ({"seat": s, "name": f"guest {g}"} for g, s in ((1, 1), (2, 2), (3, None)))
    assert changes(made, "seats", 1) == [
        ((1,), one, {**two, "seat": 1}),
        ((2,), two, {**one, "seat": 2}),
        ((None,), three, None),
    ]
    assert made.log.topic("test.1.seats").key == ("seat",)


def test_random_moves_equal_batch_after_every_batch(bench: Callable[..., Bench]) -> None:
    made = bench(
        SEATS
        + """
        CREATE VIEW seats WITH (key = 'seat') AS SELECT seat, name, x FROM guests WHERE seat >= 0;
        CREATE VIEW pairs WITH (key = 'x, seat') AS
          SELECT seat, x, name FROM guests UNION ALL SELECT id + 100, 0.5D, text FROM calls;
        CREATE VIEW names AS SELECT name, count(*) AS n FROM seats GROUP BY name;
    """
    )
    chance = random.Random(7)
    guests = range(12)
    for step in range(5):
        seats = chance.sample(range(-4, 16), len(guests))
        moved = [guest(g, seat, chance.choice("abc")) for g, seat in zip(guests, seats, strict=True)]
        made.append({"guests": [*moved, gone(chance.choice(guests))], "calls": [{"id": step, "text": "t"}]})
        made.drain()
        made.check()


@pytest.mark.parametrize("added", [[guest(3, 1)], [guest(3, 4), guest(4, 4, "guest 3")]], ids=["another", "two equal"])
def test_two_rows_under_a_key_stop_the_batch_and_change_nothing(
    bench: Callable[..., Bench], added: list[dict[str, Any]]
) -> None:
    made = bench(
        SEATS
        + """CREATE VIEW seats WITH (key = 'seat') AS SELECT seat, name FROM guests;
        CREATE VIEW n AS SELECT count(*) AS n FROM guests;"""
    )
    made.append({"guests": [guest(1, 1), guest(2, 2)]})
    made.drain()
    made.append({"guests": added})
    for _ in range(2):
        with pytest.raises(EngineError, match=r'^view "seats" has several rows under the key \{"seat":[14]\}'):
            made.drain()
        made.start()
    assert made.log.last("test/1").sequence == 0  # type: ignore[union-attr]
    made.check()


def test_the_error_names_view_key_and_place(bench: Callable[..., Bench]) -> None:
    made = bench(SEATS + "CREATE VIEW seats WITH (key = 'name, seat') AS\n  SELECT seat, name FROM guests;")
    made.append({"guests": [guest(1, 1, "ann"), guest(2, 1, "ann")]})
    with refused("engine/key-doubled"):
        made.drain()


def test_a_key_is_compared_as_spark_compares(bench: Callable[..., Bench]) -> None:
    made = bench(SEATS + "CREATE VIEW v WITH (key = 'x') AS SELECT x, name FROM guests;")
    made.append({"guests": [guest(1, 1, x=-0.0), guest(2, 2, x=float("nan"))]})
    made.drain()
    made.append({"guests": [gone(1), guest(3, 1, x=0.0)]})
    made.drain()
    assert len(list(made.log.read("test.1.v"))) == 3  # the row of 0.0 replaces that of -0.0
    made.append({"guests": [guest(4, 2, x=-float("nan"))]})
    with pytest.raises(EngineError, match=r'under the key \{"x":"NaN"\}'):
        made.drain()


def test_a_key_that_the_plan_proves_needs_no_operator(bench: Callable[..., Bench]) -> None:
    made = bench(
        SEATS
        + """
        CREATE VIEW a WITH (key = 'n, name') AS SELECT name, count(*) AS n FROM guests GROUP BY name;
        CREATE VIEW b WITH (key = 'n') AS SELECT count(*) AS n FROM guests;
        CREATE VIEW c WITH (key = 'i') AS SELECT id AS i, name FROM guests WHERE seat > 0;
        CREATE VIEW d WITH (key = 'name, seat') AS SELECT seat, name FROM one;
        CREATE VIEW one WITH (key = 'seat') AS SELECT seat, name FROM guests WHERE id < 3;
    """
    )
    assert kinds(made).count("unique") == 1
    made.append({"guests": [guest(1, 1), guest(2, 2), guest(9, 2, "guest 2")]})
    made.drain()
    made.append({"guests": [guest(1, 7), guest(9, 3, "guest 3")]})
    made.drain()
    made.check()
    keys = {name: made.log.topic(f"test.1.{name}").key for name in "abcd"}
    assert keys == {"a": ("n", "name"), "b": ("n",), "c": ("i",), "d": ("name", "seat")}


def test_a_key_that_rows_have_already_is_checked_on_the_same_level(bench: Callable[..., Bench]) -> None:
    made = bench(
        SEATS
        + """
        CREATE VIEW v WITH (key = 'id') AS
          SELECT guests.id, name, text FROM guests JOIN calls ON guests.id = calls.id;
    """
    )
    assert (kinds(made).count("unique"), made.ready.query.layout.depth) == (1, 1)
    made.append({"guests": [guest(1, 1), guest(2, 2)], "calls": [{"id": 1, "text": "a"}]})
    made.drain()
    made.append({"guests": [guest(1, 1, "ann")], "calls": [{"id": 2, "text": "b"}]})
    made.drain()
    made.check()
    made.append({"calls": [{"id": 1, "text": "c"}]})
    with pytest.raises(EngineError, match='view "v" has several rows'):
        made.drain()


def test_a_view_that_is_not_kept_has_its_key_checked_too(bench: Callable[..., Bench]) -> None:
    made = bench(SEATS + "CREATE VIEW v WITH (key = 'seat', store = 'none') AS SELECT seat FROM guests;")
    made.append({"guests": [guest(1, 1), guest(2, 1)]})
    with pytest.raises(EngineError, match='view "v" has several rows'):
        made.drain()


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("key-unknown", "CREATE VIEW v\n  WITH (key = 'seat, nam') AS SELECT seat, name FROM guests;"),
        ("key-nested", "CREATE VIEW v\n  WITH (key = 'both') AS SELECT array(seat, id) AS both FROM guests;"),
    ],
)
def test_a_column_that_cannot_be_a_key_is_refused_with_its_place(
    spark: SparkSession, tmp_path: Any, name: str, query: str
) -> None:
    with Log.open(tmp_path / "log") as log, refused(f"engine/{name}"):
        prepared(spark, pipeline_of(SEATS + query), log, tmp_path / "home")


def test_groups_that_no_topic_can_have_as_its_key_make_a_bag(bench: Callable[..., Bench]) -> None:
    made = bench(
        SEATS + "CREATE VIEW v AS SELECT array(seat, 1) AS a, count(*) AS n FROM guests GROUP BY array(seat, 1);"
    )
    made.append({"guests": [guest(1, 1), guest(2, 1)]})
    made.drain()
    made.append({"guests": [guest(2, 3)]})
    made.drain()
    made.check()
    assert made.log.topic("test.1.v").key == ()


def test_the_start_or_the_end_of_a_window_is_a_key_and_that_of_something_else_is_none(spark: SparkSession) -> None:
    span = "STRUCT<start: TIMESTAMP, end: TIMESTAMP>"
    text = f"""
        CREATE STREAM visits (page STRING, at TIMESTAMP, span {span}) WITH (event_time = 'at');
        CREATE VIEW starts AS SELECT window.start, page, count(*) AS n FROM visits GROUP BY page, window(at, '1 day');
        CREATE VIEW ends AS SELECT max(page) AS page, window.end FROM visits GROUP BY window(at, '2 days', '1 day');
        CREATE VIEW spans AS SELECT span.start, count(*) AS n FROM visits GROUP BY span;
    """
    plan = compiled(spark, pipeline_of(text, name="keys"))
    assert {view: plan.key_of(view) for view in plan.graph.views} == {
        "starts": ("page", "start"),
        "ends": ("end",),
        "spans": (),
    }
