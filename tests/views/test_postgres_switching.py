"""PostgresStore, when another lineage becomes the current one: readers see one or the other, whoever is in the way."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.log import Log
from penstock.views import catch_up
from penstock.views.postgres import PostgresStore, views_in
from penstock.views.step import Lineage
from services.postgres import Server
from tests.views.postgres import asked, assert_right, refusal
from tests.views.shop import Declared, Shop, spend


@pytest.fixture
def store(postgres: Server, schema: str) -> Iterator[PostgresStore]:
    with PostgresStore(postgres.url(), schema) as store:
        yield store


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
