"""Reading: conditions, order and pages; and nothing else."""

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from threading import Thread
from typing import Any

import apsw
import pyarrow as pa
import pytest

from penstock.errors import TooSlow, ViewError
from penstock.log import Log
from penstock.schema import arrow_schema, parse_schema
from penstock.views import Position, SqliteStore, ViewReader, catch_up
from tests.views.shop import VIEWS, Declared, Shop, Story, counted, folded, name, spend

NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)
WIDE = "id INT, paid BOOLEAN, x DOUBLE, price DECIMAL(10,2), big DECIMAL(38,0), at TIMESTAMP, tags MAP<STRING, INT>"


def wide(id_: int, **values: Any) -> dict[str, Any]:
    return dict.fromkeys(("id", "paid", "x", "price", "big", "at", "tags")) | {"id": id_} | values


LONG = "hex(" * 15 + "'a'" + ")" * 15
"""Of 64 KiB: with two of them SQLite is busy for a long time, and does not look up."""
ROWS = [
    wide(1, paid=True, x=1.5, price=Decimal("9.00"), big=Decimal(10**37), at=NOON, tags=[("a", 1)]),
    wide(2, paid=False, x=math.inf, price=Decimal("10.50"), big=Decimal(10**37 + 1), at=NOON.replace(hour=9)),
    wide(3, x=math.nan, price=Decimal("-100.00"), big=Decimal(10**37 + 2), at=NOON.replace(day=1), tags=[("a", 2)]),
    wide(4),
]


@pytest.fixture
def reader(log: Log, path: Path) -> Iterator[ViewReader]:
    views = {"wide": Declared(WIDE, key=("id",)), "names": Declared("name STRING, age INT"), "only": Declared("n INT")}
    shop = Shop(log, views=views)
    shop.announce()
    shop.batch(wide=[(None, row) for row in ROWS], names=[(None, name("ann", at % 3)) for at in range(10)])
    with SqliteStore(path) as store:
        catch_up(log, "shop", store)
    with ViewReader(path) as reader:
        yield reader


def ids(reader: ViewReader, where: str = "", *order: str) -> list[int]:
    return [row["id"] for row in reader.rows("wide", where=where, order=order)]


def refusal(reader: ViewReader, where: str) -> str:
    with pytest.raises(ViewError) as error:
        reader.rows("wide", where=where)
    return str(error.value)


def test_rows_are_python_values_and_arrow(reader: ViewReader) -> None:
    answer = reader.rows("wide")
    assert repr(counted(answer)) == repr(counted(ROWS)).replace("datetime.timezone.utc", "zoneinfo.ZoneInfo(key='UTC')")
    assert answer.table.schema == arrow_schema(parse_schema(WIDE)) == arrow_schema(reader.columns("wide"))
    assert len(answer) == 4
    assert isinstance(answer.table, pa.Table)


def test_an_answer_carries_its_position(reader: ViewReader, log: Log) -> None:
    answer = reader.rows("names", limit=1)
    assert answer.position == reader.position() == Position(log.identity, 1, log.mark().next_frame - 1, 0, 1)
    assert answer.view.key == ()


def test_an_empty_view_has_columns_and_no_rows(reader: ViewReader) -> None:
    answer = reader.rows("only")
    assert (len(answer), answer.table.schema.names, list(answer), answer.next) == (0, ["n"], [], None)


@pytest.mark.parametrize(
    ("where", "want"),
    [
        ("id > 2", [3, 4]),
        ("paid", [1]),
        ("paid = FALSE", [2]),
        ("x > 2", [2, 3]),
        ("x = 'NaN'", [3]),
        ("price > 9.5", [2]),
        ("price >= 9", [1, 2]),
        ("price IN (9, 10.5)", [1, 2]),
        ("price BETWEEN -100 AND 9", [1, 3]),
        ("big = '10000000000000000000000000000000000001'", [2]),
        ("at >= '2024-01-31'", [1, 2]),
        ("at > '2024-01-31 09:00:00'", [1]),
        ("at = '2024-01-31T13:00:00+01:00'", [1]),
        ("tags ->> 'a' = 2", [3]),
        ("price IS NULL OR id = 1", [1, 4]),
        ("id = 1 -- or not", [1]),
        ("ID=1 /* so */", [1]),
        ("abs(price) > 50 AND coalesce(paid, TRUE)", [3]),
        (
            "trim('xx' || id || 'x', 'x') = '3' AND instr(id || 'ab', 'b') = 3 AND replace('a' || id, 'a', '') = '3'",
            [3],
        ),
        ("trim(price, '.0') = '9' OR instr(tags, NULL)", [1]),
        ("at < '9999-12-31T23:59:59-05:00' AND at > '0001-01-01T00:00:00+05:00'", [1, 2, 3]),
        ("'1e9999999999999999999' = 'inf' COLLATE DECIMAL", []),
    ],
)
def test_conditions_are_those_of_sqlite_with_sparks_values(reader: ViewReader, where: str, want: list[int]) -> None:
    assert sorted(ids(reader, where)) == want


@pytest.mark.parametrize(
    ("order", "want"),
    [
        (["id desc"], [4, 3, 2, 1]),
        (["x"], [4, 1, 2, 3]),
        (["x DESC"], [3, 2, 1, 4]),
        (["price"], [4, 3, 1, 2]),
        (["big desc"], [3, 2, 1, 4]),
        (["AT asc"], [4, 3, 2, 1]),
        (["tags", "id desc"], [4, 2, 1, 3]),
    ],
)
def test_rows_are_ordered_as_spark_orders_them(reader: ViewReader, order: list[str], want: list[int]) -> None:
    assert ids(reader, "", *order) == want


@pytest.mark.parametrize(
    "where",
    [
        "id IN (SELECT id FROM wide)",
        "EXISTS (SELECT 1)",
        "id IN names",
        "id IN (SELECT frame FROM _penstock)",
        "(SELECT sql FROM sqlite_schema) > ''",
        "load_extension('x.so')",
        "readfile('/etc/passwd') > ''",
        "count(*) > 1",
        "row_number() OVER () = 1",
        "zeroblob(1000000000) > ''",
        "1) UNION SELECT * FROM names --",
        "1); DROP TABLE wide; --",
        "1); VALUES (1); --",
        "1)) /*",
        "1) /*",
        "1) GROUP BY (id",
        "1) ORDER BY (id",
        "1; ATTACH 'x.db' AS x",
        "ATTACH 'x.db' AS x",
        "PRAGMA query_only = 0",
        "id = ?",
        "id = :id",
        "RAISE(ABORT, 'x')",
        "id = = 1",
        "id = 1\x00 OR 1",
        "'" + "x" * 20_000 + "' = ''",
        *(f"{name}({LONG}, {LONG}) > ''" for name in ("trim", "ltrim", "rtrim", "instr")),
        f"replace({LONG}, {LONG}, '') > ''",
        f"{LONG} LIKE {LONG}",
        f"{LONG} GLOB {LONG}",
        "trim(char(55296), 'x') > ''",
    ],
)
def test_nothing_but_a_condition_on_the_views_columns_is_run(reader: ViewReader, where: str, path: Path) -> None:
    refused = refusal(reader, where)
    assert refused.startswith("this is not a condition that can be used: ")
    assert not Path("x.db").exists()
    assert len(reader.rows("wide")) == 4  # and the reader is as good as new
    assert len(reader.rows("names")) == 10


def test_a_wrong_column_is_told_with_the_right_ones(reader: ViewReader) -> None:
    assert refusal(reader, "pric > 1") == (
        "this is not a condition that can be used: pric > 1\n"
        "  detail: no such column: pric.\n"
        '  hint:   Did you mean "price"?'
    )
    assert "texts stand in single quotes: 'Bern'" in refusal(reader, 'paid = "Bern"')


def test_a_query_in_a_condition_is_told(reader: ViewReader) -> None:
    assert refusal(reader, "id IN (SELECT 1)").startswith(
        "this is not a condition that can be used: id IN (SELECT 1)\n"
        "  detail: It has a query of its own.\n"
        "  hint:   Compare the columns id, paid, x, price, big, at, tags with values; functions of SQLite: abs, "
    )
    assert "detail: It calls the function random." in refusal(reader, "random() > 0")
    assert 'detail: It reads "sqlite_master.' in refusal(reader, "id IN sqlite_schema")


def test_unknown_views_and_columns_are_named(reader: ViewReader) -> None:
    with pytest.raises(ViewError, match=re.escape('view "wid" does not exist')) as error:
        reader.rows("wid")
    assert error.value.hint == 'Did you mean "wide"?'
    with pytest.raises(ViewError, match=re.escape('column "pice" does not exist in view "wide"')) as error:
        reader.rows("wide", order=["pice desc"])
    assert error.value.hint == 'Did you mean "price"?'
    with pytest.raises(ViewError, match="limit"):
        reader.rows("wide", limit=-1)


def test_names_of_views_are_found_regardless_of_case(reader: ViewReader) -> None:
    assert len(reader.rows("NAMES")) == 10


@pytest.mark.parametrize("order", [[], ["price"], ["price desc"], ["x desc", "id"], ["paid"], ["big desc"], ["tags"]])
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
def test_pages_make_the_whole(reader: ViewReader, order: list[str], limit: int) -> None:
    found: list[Any] = []
    after = None
    while True:
        page = reader.rows("wide", order=order, limit=limit, after=after, where="id < 100")
        found += [row["id"] for row in page]
        after = page.next
        if after is None:
            break
        assert len(page) == limit
    assert found == ids(reader, "", *order)


def test_pages_of_a_bag_give_equal_rows_as_often_as_they_occur(reader: ViewReader) -> None:
    found: list[Any] = []
    after = None
    while not found or after is not None:
        page = reader.rows("names", order=["age desc"], limit=3, after=after)
        found += list(page)
        after = page.next
    assert [row["age"] for row in found] == [2, 2, 2, 1, 1, 1, 0, 0, 0, 0]


def test_a_cursor_of_another_order_is_refused(reader: ViewReader) -> None:
    after = reader.rows("wide", order=["x"], limit=1).next
    with pytest.raises(ViewError, match="cannot go on from there"):
        reader.rows("wide", order=["price"], limit=1, after=after)
    for never in ("x", '[1, 1, ["\\"tags\\" COLLATE BINARY"], ["\\ud800"]]'):
        with pytest.raises(ViewError, match="this is not where a page has ended"):
            reader.rows("wide", order=["tags"], after=never)


def test_a_large_view_is_read_whole(log: Log, shop: Shop, store: SqliteStore, path: Path) -> None:
    shop.batch(names=[(None, name(f"n{at}", at)) for at in range(25_000)])
    catch_up(log, "shop", store)
    with ViewReader(path) as reader:
        assert len(reader.rows("names")) == 25_000
        page = reader.rows("names", order=["age"], limit=20_000)
        assert [row["age"] for row in reader.rows("names", order=["age"], after=page.next)] == list(
            range(20_000, 25_000)
        )
        assert reader.rows("names", limit=25_000).next is None


def test_a_store_that_is_not_there_is_named(path: Path) -> None:
    with pytest.raises(ViewError, match="there is no store") as error:
        ViewReader(path)
    assert error.value.hint == "Run the pipeline first."
    assert not path.exists()


def test_a_store_without_views_says_so(path: Path) -> None:
    SqliteStore(path).close()
    with ViewReader(path) as reader, pytest.raises(ViewError, match="does not exist") as error:
        reader.rows("spend")
    assert error.value.detail == "There are no views yet."


def test_a_store_that_is_being_made_has_nothing_yet_and_its_views_as_soon_as_they_are_there(
    log: Log, shop: Shop, path: Path
) -> None:
    shop.batch(spend=[(None, spend("Bern", 1))])
    making = apsw.Connection(str(path))
    making.execute("PRAGMA journal_mode = WAL")  # the first thing that a store does
    with ViewReader(path) as reader:
        assert (reader.views(), reader.position()) == ((), None)
        with pytest.raises(ViewError, match='view "spend" does not exist') as error:
            reader.rows("spend")
        assert (error.value.detail, error.value.hint) == ("There are no views yet.", "Run the pipeline first.")
        making.close()
        with SqliteStore(path) as store:
            catch_up(log, "shop", store)
        assert [row["city"] for row in reader.rows("spend")] == ["Bern"]


def test_a_reader_serves_several_threads(log: Log, shop: Shop, store: SqliteStore, path: Path) -> None:
    story = Story(shop, seed=1)
    story.go_on(5)
    catch_up(log, "shop", store)
    wrong: list[str] = []

    def read(reader: ViewReader) -> None:
        for _ in range(40):
            answer = reader.rows("spend")
            if counted(answer) != folded(log, shop.topic("spend"), until=answer.position.frame):
                wrong.append(str(answer.position))

    with ViewReader(path) as reader:
        threads = [Thread(target=read, args=[reader]) for _ in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            story.go_on(1)
            catch_up(log, "shop", store)
        for thread in threads:
            thread.join()
    assert wrong == []


def test_an_answer_that_takes_long_for_every_row_is_given_up_between_two(reader: ViewReader) -> None:
    slow = "length(" + "hex(" * 24 + "name" + ")" * 24 + ") < 0"
    with pytest.raises(TooSlow):
        reader.rows("names", where=slow, seconds=0.01)
    assert len(reader.rows("names", seconds=60)) == 10  # and who asks next is not given up


# Views that are only topics


def test_a_view_that_is_only_a_topic_is_folded_and_read_like_others(log: Log) -> None:
    views = VIEWS | {"stream": Declared("city STRING, n INT", key=("city",), store="topic")}
    shop = Shop(log, views=views)
    shop.batch(stream=[(None, {"city": "Bern", "n": 1}), (None, {"city": None, "n": 7})])
    shop.announce()
    frame = shop.batch(stream=[({"city": "Bern", "n": 1}, {"city": "Bern", "n": 2})], spend=[(None, spend("Zug", 1))])
    with ViewReader.of_topic(log, "shop", "stream") as reader:
        assert list(reader.rows("stream", where="n < 5")) == [{"city": "Bern", "n": 2}]
        assert [view.name for view in reader.views()] == ["stream"]
        assert reader.position() == Position(log.identity, 1, frame, batch=1, until=2)


def test_a_topic_of_no_view_is_named(log: Log) -> None:
    with pytest.raises(ViewError, match="has no views yet"):
        ViewReader.of_topic(log, "shop", "stream")
    Shop(log).announce()
    with pytest.raises(ViewError, match=re.escape('view "stream" does not exist')):
        ViewReader.of_topic(log, "shop", "stream")
