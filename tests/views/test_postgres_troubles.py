"""PostgresStore, when others have changed what is its own, and when the server is away: what it says and survives."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from penstock.log import Log
from penstock.views import catch_up
from penstock.views.postgres import PostgresStore
from services.postgres import Server
from tests.views.postgres import asked, assert_right, refusal
from tests.views.shop import Declared, Shop, Story, name, spend


@pytest.fixture
def store(postgres: Server, schema: str) -> Iterator[PostgresStore]:
    with PostgresStore(postgres.url(), schema) as store:
        yield store


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
