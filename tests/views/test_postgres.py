"""PostgresStore: how rows come into it, what readers see, what it refuses."""

import math
import re
from collections.abc import Iterator
from decimal import Decimal

import pytest

from penstock.log import Log, Record
from penstock.views import catch_up
from penstock.views.postgres import PostgresStore, reader_of
from services.postgres import Server
from tests.views.postgres import asked, assert_right, contents_in, refusal
from tests.views.shop import VIEWS, Declared, Shop, counted, name, spend


@pytest.fixture
def store(postgres: Server, schema: str) -> Iterator[PostgresStore]:
    with PostgresStore(postgres.url(), schema) as store:
        yield store


def test_a_frame_is_copied_in_binary_view_by_view_and_merged_in_one_transaction_with_its_place(
    shop: Shop, log: Log, postgres: Server, schema: str
) -> None:
    said = postgres.folder / "server.txt"
    with PostgresStore(f"{postgres.url()}?options=-clog_statement%3Dall", schema) as store:
        shop.batch(spend=[(None, spend("Bern", 1))], names=[(None, name("ann"))])
        catch_up(log, "shop", store)
        before = said.stat().st_size
        shop.batch(spend=[(spend("Bern", 1), spend("Bern", 2))], names=[(None, name("bob"))])
        catch_up(log, "shop", store)
    told = said.read_bytes()[before:].decode()
    statements = [each.strip() for each in re.findall(r"LOG:  (?:statement|execute [^:]*): (.*)", told)]
    written = statements[statements.index("BEGIN") : statements.index("COMMIT")]
    stages = [f'COPY pg_temp."_penstock_stage_1_{view}" FROM STDIN (FORMAT binary)' for view in (0, 1)]
    assert [each for each in statements if each.startswith("COPY")] == stages
    assert {*stages} < {*written} and [each for each in written if each.startswith(f'UPDATE "{schema}"._penstock SET')]
    assert statements.count("BEGIN") == 1 and not [each for each in written if "VALUES" in each]
    assert_right(postgres, schema, shop)


# What readers see


def test_readers_see_the_columns_and_nothing_else(
    shop: Shop, log: Log, store: PostgresStore, postgres: Server, schema: str
) -> None:
    shop.batch(spend=[(None, spend("Bern", 1, "2.50"))], names=[(None, name("ann", 7)), (None, name("ann", 7))])
    catch_up(log, "shop", store)
    assert asked(postgres, f'SELECT * FROM "{schema}".spend') == [("Bern", 1, Decimal("2.50"))]
    assert asked(postgres, f'SELECT * FROM "{schema}".names') == [("ann", 7), ("ann", 7)]


def test_rows_that_are_replaced_touch_no_index(
    shop: Shop, log: Log, store: PostgresStore, postgres: Server, schema: str
) -> None:
    """Where all rows of a page are replaced in one transaction, each finds room beside the row that it replaces."""
    size = f"SELECT pg_indexes_size('\"{schema}\"._penstock_1_0')"
    first = [spend(f"city {at}", at, "1.00") for at in range(2_000)]
    shop.batch(spend=[(None, row) for row in first])
    catch_up(log, "shop", store)
    before = asked(postgres, size)
    shop.batch(spend=[(row, {**row, "spend": Decimal("2.00")}) for row in first])
    catch_up(log, "shop", store)
    assert_right(postgres, schema, shop)
    assert asked(postgres, size) == before


def test_a_key_and_declared_indexes_are_indexed(log: Log, store: PostgresStore, postgres: Server, schema: str) -> None:
    views = {"spend": Declared(VIEWS["spend"].schema, key=("city",), index=(("orders", "city"), ("spend",)))}
    Shop(log, views=views).announce()
    catch_up(log, "shop", store)
    found = asked(postgres, f"SELECT indexdef FROM pg_indexes WHERE schemaname = '{schema}' ORDER BY 1")
    columns = [text.rpartition("(")[2] for (text,) in found]
    assert sorted(columns) == ["_penstock_key)", "city)", "orders, city)", "spend)"]


def test_a_value_that_is_too_long_for_an_index_is_kept(log: Log, postgres: Server, schema: str) -> None:
    said: list[str] = []
    shop = Shop(log)
    shop.announce()
    long = "".join(chr(0x4E00 + at * 7919 % 20_000) for at in range(9000))
    with PostgresStore(postgres.url(), schema, say=said.append) as store:
        catch_up(log, "shop", store)
        shop.batch(spend=[(None, spend(long, 1))])
        catch_up(log, "shop", store)
    assert contents_in(postgres.url(), schema, "spend") == counted([spend(long, 1)])
    assert len(said) == 1 and 'view "spend" has no index for readers' in said[0]
    with PostgresStore(postgres.url(), f"{schema}-later", say=said.append) as store:
        catch_up(log, "shop", store)
    assert contents_in(postgres.url(), f"{schema}-later", "spend") == counted([spend(long, 1)])
    assert len(said) == 2


def test_a_view_can_be_asked_as_in_sqlite(
    shop: Shop, log: Log, store: PostgresStore, postgres: Server, schema: str
) -> None:
    shop.batch(spend=[(None, spend(city, at)) for at, city in enumerate(["Bern", "Genf", "Zug", None])])
    catch_up(log, "shop", store)
    with reader_of(postgres.url(), schema, "SPEND") as reader:
        answer = reader.rows("spend", where="orders > 0", order=["orders desc"], limit=2)
        assert [row["city"] for row in answer] == [None, "Zug"]
        assert answer.position == store.position()


# What does not fit is refused in the words of the SQLite store


def test_a_row_that_is_not_what_is_replaced_is_refused(shop: Shop, log: Log, store: PostgresStore) -> None:
    shop.batch(spend=[(None, spend("Bern", 1)), (None, spend("Genf", 1))])
    catch_up(log, "shop", store)
    shop.batch(spend=[(spend("Genf", 1), spend("Genf", 2)), (spend("Bern", 7), spend("Bern", 2))])
    assert refusal(lambda: catch_up(log, "shop", store)).startswith(
        'view "spend": frame 4 replaces a row that is not there\n'
        "  detail: The row is city = 'Bern', orders = 7, spend = Decimal('1.00'); "
        "under its key there is city = 'Bern', orders = 1, spend = Decimal('1.00').\n"
        "  hint:   The table or the change topic is damaged. Drop the schema shop-"
    )


@pytest.mark.parametrize("together", [1, 500])
def test_changes_that_do_not_fit_are_refused_also_within_a_transaction(
    together: int, shop: Shop, log: Log, store: PostgresStore
) -> None:
    shop.batch(spend=[(None, spend(None, 1))], names=[(None, name("ann", 1))])
    shop.batch(spend=[(None, spend(None, 2))])
    assert "frame 4 adds a row whose key is there already" in refusal(
        lambda: catch_up(log, "shop", store, together=together)
    )


def test_a_bag_row_that_is_taken_away_must_be_there_then(shop: Shop, log: Log, store: PostgresStore) -> None:
    shop.batch(names=[(None, name("ann", 1))])
    shop.batch(names=[(name("ann", None), None)])
    shop.batch(names=[(None, name("ann", None))])
    assert refusal(lambda: catch_up(log, "shop", store)).startswith(
        "view \"names\": frame 4 takes away a row that is not there\n  detail: It is name = 'ann', age = NULL."
    )


def test_rows_deleted_or_replaced_otherwise_are_refused(shop: Shop, log: Log, store: PostgresStore) -> None:
    shop.batch(spend=[(spend("Bern", 7), None)])
    assert "frame 3 deletes a row that is not there" in refusal(lambda: catch_up(log, "shop", store))


def test_a_row_is_not_replaced_by_one_with_another_key(shop: Shop, log: Log, store: PostgresStore) -> None:
    shop.batch(spend=[(None, spend("Bern", 1))])
    shop.batch(spend=[(spend("Bern", 1), spend("Genf", 1))])
    assert "frame 4 replaces a row by one with another key" in refusal(lambda: catch_up(log, "shop", store))


def test_a_deletion_says_which_row_leaves(shop: Shop, log: Log, store: PostgresStore) -> None:
    shop.batch(spend=[(None, spend("Bern", 1))])
    note = {"pipeline": "shop", "lineage": 1, "batch": 1, "from": 0, "until": 1}
    bare = Record({"city": "Bern"}, deleted=True)
    log.append_all({"shop.1.spend": [bare]}, producer="shop/1", sequence=1, note=note)
    assert "frame 4 has a deletion that does not say which row leaves" in refusal(lambda: catch_up(log, "shop", store))


# Names


@pytest.mark.parametrize(
    ("view", "columns", "said"),
    [
        ("v" * 64, "n INT", "has 64 bytes, and PostgreSQL takes 63"),
        ("_penstock_x", "n INT", "needs the name for itself"),
        ("v", "`" + "ä" * 32 + "` INT", "has 64 bytes, and PostgreSQL takes 63"),
        ("v", "ctid INT", "needs the name for itself"),
    ],
)
def test_names_that_postgresql_cannot_take_are_refused(
    view: str, columns: str, said: str, log: Log, store: PostgresStore
) -> None:
    Shop(log, views={view: Declared(columns)}).announce()
    assert said in refusal(lambda: catch_up(log, "shop", store))
    assert store.position() is None


@pytest.mark.parametrize("bad", ["", "pg_shop", "s" * 64])
def test_schemas_that_cannot_be_are_refused(bad: str) -> None:
    assert "cannot be named" in refusal(lambda: PostgresStore("postgresql://nowhere", bad))


def test_a_schema_may_have_an_awkward_name(shop: Shop, log: Log, postgres: Server, schema: str) -> None:
    awkward = f'{schema} %s "%b" \'x'
    shop.batch(spend=[(None, spend("Bern", 1))])
    with PostgresStore(postgres.url(), awkward) as store:
        catch_up(log, "shop", store)
        shop.batch(spend=[(spend("Bern", 1), spend("Bern", 2))])
        catch_up(log, "shop", store)
    assert_right(postgres, awkward, shop)


def test_awkward_names_are_kept(log: Log, store: PostgresStore, postgres: Server, schema: str) -> None:
    views = {"Select": Declared('`a "b" % c` STRING, `user` INT, `USERS` INT, c0 INT', key=("user",))}
    shop = Shop(log, views=views)
    shop.announce()
    row = {'a "b" % c': "x", "user": 1, "USERS": 2, "c0": 3}
    shop.batch(Select=[(None, row)])
    shop.batch(Select=[(row, {**row, "c0": 4})])
    catch_up(log, "shop", store)
    assert asked(postgres, f'SELECT "a ""b"" % c", "user", "USERS", c0 FROM "{schema}"."Select"') == [("x", 1, 2, 4)]


def test_numbers_beyond_numbers_are_kept(log: Log, store: PostgresStore, postgres: Server, schema: str) -> None:
    shop = Shop(log, views={"v": Declared("id INT, share DOUBLE", key=("share",))})
    shop.announce()
    rows = [{"id": at, "share": share} for at, share in enumerate([-0.0, math.inf, -math.inf, math.nan, None, 5e-324])]
    shop.batch(v=[(None, row) for row in rows])
    shop.batch(v=[({"id": 0, "share": 0.0}, {"id": 9, "share": -0.0})])  # zero has one key, whatever its sign
    catch_up(log, "shop", store)
    found = dict(asked(postgres, f'SELECT id, share FROM "{schema}".v'))
    assert repr([found[at] for at in (9, 1, 2, 3, 4, 5)]) == "[-0.0, inf, -inf, nan, None, 5e-324]"
