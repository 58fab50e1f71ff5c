"""PostgresStore: what it keeps, what it refuses, and what it survives."""

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from penstock.errors import ViewError
from penstock.log import Log, Record
from penstock.views import catch_up
from penstock.views.postgres import PostgresStore, reader_of, views_in
from penstock.views.step import Lineage
from services.postgres import Server
from tests.views.postgres import asked, contents_in
from tests.views.shop import VIEWS, Declared, Shop, Story, counted, folded, name, spend


@pytest.fixture
def store(postgres: Server, schema: str) -> Iterator[PostgresStore]:
    with PostgresStore(postgres.url(), schema) as store:
        yield store


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(ViewError) as error:
        act()
    assert ":penstock@" not in str(error.value)
    return str(error.value)


def assert_right(postgres: Server, schema: str, shop: Shop) -> None:
    for view in VIEWS:
        assert contents_in(postgres.url(), schema, view) == folded(shop.log, shop.topic(view))


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


# Another lineage


def test_a_switch_with_the_same_columns_keeps_grants_and_what_depends(
    shop: Shop, log: Log, store: PostgresStore, postgres: Server, schema: str
) -> None:
    catch_up(log, "shop", store)
    with postgres.connection() as connection:
        connection.execute(f'GRANT SELECT ON "{schema}".spend TO PUBLIC')
        connection.execute(f'CREATE VIEW "{schema}".total AS SELECT sum(orders) AS n FROM "{schema}".spend')
    second = Shop(log, lineage=2)
    second.batch(spend=[(None, spend("Bern", 5))])
    second.announce()
    catch_up(log, "shop", store)
    assert asked(postgres, f'SELECT n FROM "{schema}".total') == [(5,)]
    assert asked(postgres, f"SELECT has_table_privilege('public', '\"{schema}\".spend', 'SELECT')") == [(True,)]
    assert len(asked(postgres, f"SELECT 1 FROM pg_tables WHERE schemaname = '{schema}'")) == 5


def test_a_switch_to_other_columns_keeps_grants_and_refuses_where_something_depends(
    shop: Shop, log: Log, store: PostgresStore, postgres: Server, schema: str
) -> None:
    shop.batch(spend=[(None, spend("Bern", 1))])
    catch_up(log, "shop", store)
    before = store.position()
    with postgres.connection() as connection:
        connection.execute(f'GRANT SELECT ON "{schema}".spend TO PUBLIC')
        connection.execute(f'CREATE ROLE "{schema}"')
        connection.execute(f'GRANT UPDATE ON "{schema}".spend TO "{schema}" WITH GRANT OPTION')
        connection.execute(f'GRANT INSERT (orders, city) ON "{schema}".spend TO "{schema}"')
        connection.execute(f'CREATE VIEW "{schema}".total AS SELECT sum(orders) AS n FROM "{schema}".spend')
    second = Shop(log, lineage=2, views={"spend": Declared("orders BIGINT, town STRING", key=("town",))})
    second.batch(spend=[(None, {"orders": 4, "town": "Bern"})])
    second.announce()
    said = refusal(lambda: catch_up(log, "shop", store))
    assert "cannot be replaced by those of the new lineage" in said and "total" in said and "hint:   Drop what" in said
    assert store.position() == before
    with postgres.connection() as connection:
        connection.execute(f'DROP VIEW "{schema}".total')
    catch_up(log, "shop", store)
    assert asked(postgres, f'SELECT * FROM "{schema}".spend') == [(4, "Bern")]
    assert [view.name for view in views_in(postgres.url(), schema)] == ["spend"]
    rights = [("table", "'UPDATE WITH GRANT OPTION'"), ("column", "'orders', 'INSERT'"), ("column", "'town', 'INSERT'")]
    found = [asked(postgres, f"SELECT has_{of}_privilege('{schema}', '\"{schema}\".spend', {it})") for of, it in rights]
    assert found == [[(True,)], [(True,)], [(False,)]]
    assert asked(postgres, f"SELECT has_table_privilege('public', '\"{schema}\".spend', 'SELECT')") == [(True,)]


def test_a_switch_waits_for_a_reader_and_keeps_what_it_has_filled(
    shop: Shop, log: Log, postgres: Server, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.views.postgres.store.SHOWING_SECONDS", 0.0)
    shop.batch(spend=[(None, spend("Bern", 1))])
    look = f'SELECT orders FROM "{schema}".spend'
    with PostgresStore(postgres.url(), schema) as store, postgres.connection() as reader:
        catch_up(log, "shop", store)
        before = store.position()
        reader.execute("BEGIN")
        assert reader.execute(look).fetchone() == (1,)
        second = Shop(log, lineage=2)
        second.batch(spend=[(None, spend("Bern", 2))])
        second.announce()
        assert "wait for a reader" in refusal(lambda: catch_up(log, "shop", store))
        assert store.position() == before
        assert reader.execute(look).fetchone() == (1,) and asked(postgres, look) == [(1,)]
        monkeypatch.setattr("penstock.views.postgres.store.merge", None)  # nothing is filled again
        monkeypatch.setattr("penstock.views.postgres.store.SHOWING_SECONDS", 60.0)
        monkeypatch.setattr("time.sleep", lambda _: reader.execute("COMMIT"))
        with PostgresStore(postgres.url(), schema) as again:
            catch_up(log, "shop", again)
    assert_right(postgres, schema, second)


def test_what_another_follower_has_filled_is_not_tidied_away(
    shop: Shop, log: Log, store: PostgresStore, postgres: Server, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.views.postgres.store.SHOWING_SECONDS", 0.0)
    show, second = store._show_at_last, Shop(log, lineage=2)
    with PostgresStore(postgres.url(), schema) as other, postgres.connection() as reader:

        def show_and_be_overtaken(lineage: Lineage, generation: int) -> None:
            show(lineage, generation)
            reader.execute("BEGIN")
            reader.execute(f'SELECT * FROM "{schema}".spend')
            second.batch(spend=[(None, spend("Bern", 2))])
            second.announce()
            assert "wait for a reader" in refusal(lambda: catch_up(log, "shop", other))

        monkeypatch.setattr(store, "_show_at_last", show_and_be_overtaken)
        catch_up(log, "shop", store)
        reader.execute("COMMIT")
        monkeypatch.setattr("penstock.views.postgres.store.merge", None)  # nothing is filled again
        catch_up(log, "shop", other)
    assert_right(postgres, schema, second)


def test_what_was_filled_and_is_gone_is_filled_again(
    shop: Shop, log: Log, store: PostgresStore, postgres: Server, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.views.postgres.store.SHOWING_SECONDS", 0.0)
    catch_up(log, "shop", store)
    second = Shop(log, lineage=2)
    second.batch(spend=[(None, spend("Bern", 2))])
    with postgres.connection() as reader:
        reader.execute("BEGIN")
        reader.execute(f'SELECT * FROM "{schema}".spend')
        second.announce()
        assert "wait for a reader" in refusal(lambda: catch_up(log, "shop", store))
        reader.execute("COMMIT")
        reader.execute(f'DROP TABLE "{schema}"._penstock_2_0')
    catch_up(log, "shop", store)
    assert_right(postgres, schema, second)
    assert len(asked(postgres, f"SELECT 1 FROM pg_tables WHERE schemaname = '{schema}'")) == 5


def test_what_was_filled_from_another_log_is_not_shown(
    tmp_path: Path, shop: Shop, log: Log, store: PostgresStore, postgres: Server, schema: str
) -> None:
    shop.batch(spend=[(None, spend("Bern", 1))])
    with postgres.connection() as connection:
        connection.execute(f'CREATE SCHEMA "{schema}"')
        connection.execute(f'CREATE TABLE "{schema}".spend (n integer)')
    assert "already exists" in refusal(lambda: catch_up(log, "shop", store))
    with postgres.connection() as connection:
        connection.execute(f'DROP TABLE "{schema}".spend')
    with Log.open(tmp_path / "other") as other:
        another = Shop(other)
        another.announce()
        another.batch(spend=[(None, spend("Genf", 7))])
        catch_up(other, "shop", store)
        assert_right(postgres, schema, another)


def test_a_reader_of_the_old_tables_is_not_in_the_way(
    shop: Shop, log: Log, store: PostgresStore, postgres: Server, schema: str
) -> None:
    shop.batch(spend=[(None, spend("Bern", 1))])
    catch_up(log, "shop", store)
    with postgres.connection() as reader:
        reader.execute("BEGIN")
        old = f'"{schema}"._penstock_1_0'
        assert reader.execute(f"SELECT orders FROM {old}").fetchone() == (1,)
        second = Shop(log, lineage=2)
        second.batch(spend=[(None, spend("Bern", 2))])
        second.announce()
        catch_up(log, "shop", store)
        assert reader.execute(f"SELECT orders FROM {old}").fetchone() == (1,)
        assert reader.execute(f'SELECT orders FROM "{schema}".spend').fetchone() == (2,)
    store.purge()
    assert asked(postgres, f"SELECT to_regclass('{old}')") == [(None,)]


def test_what_somebody_is_filling_is_purged_when_it_is_filled(
    shop: Shop, log: Log, store: PostgresStore, postgres: Server, schema: str
) -> None:
    catch_up(log, "shop", store)
    with postgres.connection() as other, ThreadPoolExecutor(1) as beside:
        with other.transaction():
            other.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"penstock {schema}"])
            other.execute(f'CREATE TABLE "{schema}"._penstock_9_0 ()')
            purged = beside.submit(store.purge)
            mine = other.info.backend_pid
            waits = f"SELECT count(*) FROM pg_stat_activity WHERE {mine} = ANY(pg_blocking_pids(pid))"
            while not purged.done() and asked(postgres, waits) == [(0,)]:
                time.sleep(0.005)
        purged.result()
    assert asked(postgres, f"SELECT to_regclass('\"{schema}\"._penstock_9_0')") == [(None,)]


# What others have done to it


def test_a_table_that_was_changed_is_refused(
    shop: Shop, log: Log, store: PostgresStore, postgres: Server, schema: str
) -> None:
    catch_up(log, "shop", store)
    with postgres.connection() as connection:
        connection.execute(f'ALTER TABLE "{schema}"._penstock_1_1 RENAME age TO years')
    shop.batch(names=[(None, name("ann"))])
    with PostgresStore(postgres.url(), schema) as again:
        assert refusal(lambda: catch_up(log, "shop", again)) == (
            'the table of view "names" in PostgreSQL is not as it was made\n'
            '  detail: Column "age" was integer, and is missing.\n'
            f'  hint:   Drop the schema "{schema}": the store fills itself anew.'
        )


def test_a_schema_that_was_dropped_is_filled_anew(
    shop: Shop, log: Log, store: PostgresStore, postgres: Server, schema: str
) -> None:
    Story(shop, seed=12).go_on(5)
    catch_up(log, "shop", store)
    with postgres.connection() as connection:
        connection.execute(f'DROP SCHEMA "{schema}" CASCADE')
    Story(Shop(log, lineage=2), seed=13)
    catch_up(log, "shop", store)
    assert_right(postgres, schema, shop)


def test_a_schema_that_was_dropped_gets_the_columns_of_now(
    log: Log, store: PostgresStore, postgres: Server, schema: str
) -> None:
    first = Shop(log, views={"sums": Declared("name STRING, n BIGINT", key=("name",))})
    first.announce()
    first.batch(sums=[(None, {"name": "a", "n": 1})])
    catch_up(log, "shop", store)
    with postgres.connection() as connection:
        connection.execute(f'DROP SCHEMA "{schema}" CASCADE')
    second = Shop(log, lineage=2, views={"sums": Declared("name STRING, n DOUBLE", key=("name",))})
    second.batch(sums=[(None, {"name": "a", "n": 1.5})])
    second.announce()
    catch_up(log, "shop", store)
    assert asked(postgres, f'SELECT * FROM "{schema}".sums') == [("a", 1.5)]


def test_a_name_that_is_taken_is_refused(shop: Shop, log: Log, postgres: Server, schema: str) -> None:
    with postgres.connection() as connection:
        connection.execute(f'CREATE SCHEMA "{schema}"')
        connection.execute(f'CREATE TABLE "{schema}".spend (n integer)')
    with PostgresStore(postgres.url(), schema) as store:
        said = refusal(lambda: catch_up(log, "shop", store))
        assert 'relation "spend" already exists' in said and "?schema=NAME" in said
        assert store.position() is None


def test_a_store_of_another_format_is_refused(
    shop: Shop, log: Log, store: PostgresStore, postgres: Server, schema: str
) -> None:
    catch_up(log, "shop", store)
    with postgres.connection() as connection:
        connection.execute(f'UPDATE "{schema}"._penstock SET format = 99')
    assert refusal(store.position).startswith(f'schema "{schema}" has format 99')


def test_a_locked_store_says_so(
    shop: Shop, log: Log, postgres: Server, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.views.postgres.connecting.LOCK_SECONDS", 0.05)
    with PostgresStore(postgres.url(), schema) as store, postgres.connection() as holder:
        catch_up(log, "shop", store)
        holder.execute("BEGIN")
        holder.execute(f'SELECT * FROM "{schema}"._penstock FOR UPDATE')
        shop.batch()
        assert " is locked" in refusal(lambda: catch_up(log, "shop", store))


def test_a_store_that_is_given_too_little_time_says_so(shop: Shop, log: Log, postgres: Server, schema: str) -> None:
    url = f"{postgres.url()}?options=-cstatement_timeout%3D50"
    with PostgresStore(postgres.url(), schema) as store:
        catch_up(log, "shop", store)
    with PostgresStore(url, schema) as store, postgres.connection() as holder:
        holder.execute("BEGIN")
        holder.execute(f'SELECT * FROM "{schema}"._penstock FOR UPDATE')
        shop.batch()
        said = refusal(lambda: catch_up(log, "shop", store))
        assert " is given too little time" in said and "statement_timeout = 0" in said


# Connections


def test_a_server_that_is_killed_and_started_again_goes_on(
    shop: Shop, log: Log, store: PostgresStore, postgres: Server, schema: str
) -> None:
    story = Story(shop, seed=21)
    story.go_on(10)
    catch_up(log, "shop", store)
    postgres.kill()
    story.go_on(10)
    assert " cannot be reached" in refusal(lambda: catch_up(log, "shop", store))
    assert " cannot be reached" in refusal(lambda: catch_up(log, "shop", store))
    postgres.start()
    catch_up(log, "shop", store)
    assert_right(postgres, schema, shop)


@pytest.mark.parametrize("moment", ["copy", "update", "COMMIT", "after"])
def test_a_connection_that_is_lost_applies_nothing_twice(
    moment: str, shop: Shop, log: Log, store: PostgresStore, postgres: Server, schema: str
) -> None:
    shop.batch(spend=[(None, spend("Bern", 1))], names=[(None, name("ann"))])
    catch_up(log, "shop", store)
    shop.batch(spend=[(spend("Bern", 1), spend("Bern", 2))], names=[(None, name("ann"))])
    with pytest.MonkeyPatch.context() as patched:
        _cut(patched, store, moment)
        assert " cannot be reached" in refusal(lambda: catch_up(log, "shop", store))
    catch_up(log, "shop", store)
    assert_right(postgres, schema, shop)


def _cut(patched: pytest.MonkeyPatch, store: PostgresStore, moment: str) -> None:
    """The connection is lost before, or after, what is done at a moment."""
    execute, copy = psycopg.Cursor.execute, psycopg.Cursor.copy

    def cut_execute(self: Any, query: str, *rest: Any, **words: Any) -> Any:
        if moment == "after" and query == "COMMIT":
            execute(self, query)
            self.connection.close()
            raise psycopg.OperationalError("the connection is lost")
        if query.startswith(moment) or (moment == "update" and query.startswith("UPDATE")):
            self.connection.close()
        return execute(self, query, *rest, **words)

    def cut_copy(self: Any, query: str, *rest: Any, **words: Any) -> Any:
        if moment == "copy":
            self.connection.close()
        return copy(self, query, *rest, **words)

    patched.setattr(psycopg.Cursor, "execute", cut_execute)
    patched.setattr(psycopg.Cursor, "copy", cut_copy)


def test_a_server_that_is_not_there_is_named_without_the_password(log: Log, shop: Shop) -> None:
    with PostgresStore("postgresql://ann:hunter2@127.0.0.1:1/views?password=hunter2", "shop") as store:
        said = refusal(lambda: catch_up(log, "shop", store))
    assert 'the store "postgresql://ann:***@127.0.0.1:1/views?password=***" cannot be reached' in said
    assert "hunter2" not in said + repr(store)


def test_an_address_that_cannot_be_read_is_not_shown(log: Log, shop: Shop) -> None:
    with PostgresStore("postgresql://ann:hunter2%@db/views", "shop") as store:
        said = refusal(lambda: catch_up(log, "shop", store))
    assert said.startswith("the address of the store cannot be read") and "hunter2" not in said


def test_a_wrong_password_is_not_shown(log: Log, shop: Shop, postgres: Server) -> None:
    with PostgresStore(postgres.url().replace(":penstock@", ":hunter2@"), "shop") as store:
        said = refusal(lambda: catch_up(log, "shop", store))
    assert "password authentication failed" in said and "hunter2" not in said


def test_numbers_beyond_numbers_are_kept(log: Log, store: PostgresStore, postgres: Server, schema: str) -> None:
    shop = Shop(log, views={"v": Declared("id INT, share DOUBLE", key=("share",))})
    shop.announce()
    rows = [{"id": at, "share": share} for at, share in enumerate([-0.0, math.inf, -math.inf, math.nan, None, 5e-324])]
    shop.batch(v=[(None, row) for row in rows])
    shop.batch(v=[({"id": 0, "share": 0.0}, {"id": 9, "share": -0.0})])  # zero has one key, whatever its sign
    catch_up(log, "shop", store)
    found = dict(asked(postgres, f'SELECT id, share FROM "{schema}".v'))
    assert repr([found[at] for at in (9, 1, 2, 3, 4, 5)]) == "[-0.0, inf, -inf, nan, None, 5e-324]"
