"""SqliteStore: what it keeps, what it refuses, and what it survives."""

import random
import shutil
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import apsw
import pytest

from penstock.errors import ViewError
from penstock.log import Log, Record
from penstock.schema import parse_schema
from penstock.views import Position, SqliteStore, Step, ViewReader, catch_up
from penstock.views.step import View
from penstock.views.tables import Table
from tests.views.shop import VIEWS, Declared, Shop, Story, counted, folded, name, spend


def rows(path: Path, view: str) -> list[dict[str, Any]]:
    with ViewReader(path) as reader:
        return list(reader.rows(view))


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(ViewError) as error:
        act()
    return str(error.value)


def test_keys_of_every_type_can_be_null_and_are_found(log: Log, store: SqliteStore, path: Path) -> None:
    key = ("a", "b", "c", "d")
    schema = "a DOUBLE, b TIMESTAMP, c DECIMAL(20,3), d BINARY, n INT"
    shop = Shop(log, views={"v": Declared(schema, key=key)})
    shop.announce()
    first: dict[str, Any] = {"a": float("nan"), "b": None, "c": Decimal("-0.500"), "d": b"\x00", "n": 1}
    second: dict[str, Any] = {"a": None, "b": None, "c": None, "d": None, "n": 1}
    shop.batch(v=[(None, first), (None, second)])
    shop.batch(v=[(first, {**first, "n": 2}), (second, {**second, "n": 3})])
    catch_up(log, "shop", store)
    assert counted(rows(path, "v")) == counted([{**first, "n": 2}, {**second, "n": 3}])
    shop.batch(v=[({**first, "n": 2}, None)])
    catch_up(log, "shop", store)
    assert counted(rows(path, "v")) == counted([{**second, "n": 3}])


def test_a_view_may_be_all_key_or_have_awkward_columns(log: Log, store: SqliteStore, path: Path) -> None:
    views = {
        "all_key": Declared("a INT, b STRING", key=("a", "b")),
        "odd": Declared('_hash INT, rowid STRING, `a "b" c` STRING, `select` INT'),
    }
    shop = Shop(log, views=views)
    shop.announce()
    odd = {"_hash": 1, "rowid": "x", 'a "b" c': "y", "select": 2}
    shop.batch(all_key=[(None, {"a": 1, "b": None})], odd=[(None, odd), (None, odd), (None, {**odd, "rowid": None})])
    shop.batch(all_key=[({"a": 1, "b": None}, None)], odd=[(odd, None)])
    catch_up(log, "shop", store)
    assert rows(path, "all_key") == []
    assert counted(rows(path, "odd")) == counted([odd, {**odd, "rowid": None}])


def test_views_that_are_only_topics_or_nothing_have_no_table(log: Log, store: SqliteStore, path: Path) -> None:
    views = VIEWS | {"stream": Declared("n INT", store="topic"), "load": Declared("n INT", store="none")}
    shop = Shop(log, views=views)
    shop.announce()
    shop.batch(spend=[(None, spend("Bern", 1))], stream=[(None, {"n": 1})])
    catch_up(log, "shop", store)
    with ViewReader(path) as reader:
        assert [view.name for view in reader.views()] == ["spend", "names"]


@pytest.mark.parametrize("view", ["spend", "names"])
def test_rows_to_be_changed_are_found_by_an_index(view: str) -> None:
    table = Table(View(view, parse_schema(VIEWS[view].schema), VIEWS[view].key))
    connection = apsw.Connection(":memory:")
    connection.create_collation("DECIMAL", lambda one, other: 0)
    connection.execute(table.create)
    for statement in [table.insert, table.update, table.delete] if table.view.key else [table.take]:
        plan = str(connection.execute(f"EXPLAIN QUERY PLAN {statement}", [1] * statement.count("?")).fetchall())
        assert f"INDEX {view} key" in plan
        assert f"SCAN {view}" not in plan


def test_a_row_that_is_not_what_is_replaced_is_refused(shop: Shop, log: Log, store: SqliteStore) -> None:
    shop.batch(spend=[(None, spend("Bern", 1)), (None, spend("Genf", 1))])
    shop.batch(spend=[(spend("Genf", 1), spend("Genf", 2)), (spend("Bern", 7), spend("Bern", 2))])
    assert refusal(lambda: catch_up(log, "shop", store)) == (
        'view "spend": frame 4 replaces a row that is not there\n'
        "  detail: The row is city = 'Bern', orders = 7, spend = '1.00'; "
        "under its key there is city = 'Bern', orders = 1, spend = '1.00'.\n"
        "  hint:   The table or the change topic is damaged. "
        "Take the store away: a new one fills itself from the log."
    )


def test_a_row_that_is_deleted_must_be_there(shop: Shop, log: Log, store: SqliteStore) -> None:
    shop.batch(spend=[(spend("Bern", 7), None)])
    assert "frame 3 deletes a row that is not there" in refusal(lambda: catch_up(log, "shop", store))


def test_a_key_that_is_there_already_is_refused(shop: Shop, log: Log, store: SqliteStore) -> None:
    shop.batch(spend=[(None, spend(None, 1))])
    shop.batch(spend=[(None, spend(None, 2))])
    assert refusal(lambda: catch_up(log, "shop", store)).startswith(
        'view "spend": frame 4 adds a row whose key is there already\n'
        "  detail: The row is city = NULL, orders = 2, spend = '1.00'; "
        "under its key there is city = NULL, orders = 1, spend = '1.00'."
    )


def test_a_bag_row_that_is_taken_away_must_be_there(shop: Shop, log: Log, store: SqliteStore) -> None:
    shop.batch(names=[(None, name("ann", 1))])
    shop.batch(names=[(name("ann", None), None)])
    assert refusal(lambda: catch_up(log, "shop", store)).startswith(
        "view \"names\": frame 4 takes away a row that is not there\n  detail: It is name = 'ann', age = NULL."
    )


def test_a_row_is_not_replaced_by_one_with_another_key(shop: Shop, log: Log, store: SqliteStore) -> None:
    shop.batch(spend=[(None, spend("Bern", 1))])
    shop.batch(spend=[(spend("Bern", 1), spend("Genf", 1))])
    assert "frame 4 replaces a row by one with another key" in refusal(lambda: catch_up(log, "shop", store))


def test_a_deletion_says_which_row_leaves(shop: Shop, log: Log, store: SqliteStore) -> None:
    shop.batch(spend=[(None, spend("Bern", 1))])
    note = {"pipeline": "shop", "lineage": 1, "batch": 1, "from": 0, "until": 1}
    bare = Record({"city": "Bern"}, deleted=True)
    log.append_all({"shop.1.spend": [bare]}, producer="shop/1", sequence=1, note=note)
    assert "frame 4 has a deletion that does not say which row leaves" in refusal(lambda: catch_up(log, "shop", store))


@pytest.mark.parametrize("bad", ["sqlite_x", "_penstock", "_PENSTOCK_VIEWS"])
def test_a_view_whose_name_sqlite_needs_is_refused(bad: str, log: Log, store: SqliteStore) -> None:
    Shop(log, views={bad: Declared("n INT")}).announce()
    assert f'view "{bad}" cannot be a table in SQLite' in refusal(lambda: catch_up(log, "shop", store))


def test_a_step_before_any_switch_is_refused(store: SqliteStore) -> None:
    assert "the store has no views yet" in refusal(lambda: store.apply([]))


# The file


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no database at all, but long enough to be looked at" * 50)
    assert refusal(lambda: SqliteStore(text)).startswith(f'the store "{text}" is damaged')
    other = tmp_path / "other.db"
    connection = apsw.Connection(str(other))
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    assert refusal(lambda: SqliteStore(other)).startswith(f'"{other}" is not a store of views')
    assert refusal(lambda: ViewReader(other)).startswith(f'"{other}" is not a store of views')


def test_a_file_of_another_format_is_refused(path: Path) -> None:
    SqliteStore(path).close()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert refusal(lambda: SqliteStore(path)).startswith(f'"{path}" has format 99')


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "views.db"
    assert refusal(lambda: SqliteStore(path)).startswith(f'there is no store "{path}"')


def test_a_locked_store_says_so(
    shop: Shop, log: Log, store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.views.database.BUSY_MILLISECONDS", 50)
    holder = apsw.Connection(str(path))
    holder.execute("BEGIN IMMEDIATE")
    with SqliteStore(path) as waiting:
        assert refusal(lambda: catch_up(log, "shop", waiting)).startswith(f'the store "{path}" is locked')
    holder.execute("ROLLBACK")
    holder.close()


def test_readers_see_the_views_between_two_steps_only(shop: Shop, log: Log, path: Path) -> None:
    shop.batch(spend=[(None, spend("Bern", 1))], names=[(None, name("ann"))])
    with SqliteStore(path) as store, ViewReader(path) as reader:
        catch_up(log, "shop", store)
        seen = []
        shop.batch(spend=[(spend("Bern", 1), spend("Bern", 2))], names=[(None, name("bob"))])

        class Watched(SqliteStore):
            def _take(self, steps: Sequence[Step], before: Position) -> None:
                super()._take(steps, before)
                seen.append((len(reader.rows("names")), next(iter(reader.rows("spend")))["orders"]))

        with Watched(path) as watched:
            catch_up(log, "shop", watched)
        assert seen == [(1, 1)]
        assert (len(reader.rows("names")), next(iter(reader.rows("spend")))["orders"]) == (2, 2)


def test_a_store_restored_from_an_older_copy_catches_up(shop: Shop, log: Log, path: Path) -> None:
    story = Story(shop, seed=11)
    story.go_on(10)
    with SqliteStore(path) as store:
        catch_up(log, "shop", store)
    shutil.copy(path, path.with_suffix(".copy"))
    story.go_on(10)
    with SqliteStore(path) as store:
        catch_up(log, "shop", store)
    path.with_suffix(".copy").replace(path)
    with SqliteStore(path) as store:
        catch_up(log, "shop", store)
    for view in VIEWS:
        assert counted(rows(path, view)) == folded(log, shop.topic(view))


def test_a_store_whose_file_is_taken_away_under_it_begins_anew(
    shop: Shop, log: Log, store: SqliteStore, path: Path
) -> None:
    Story(shop, seed=12).go_on(5)
    catch_up(log, "shop", store)
    with ViewReader(path) as reader:
        assert reader.position() == store.position()
        path.rename(path.with_suffix(".gone"))
        catch_up(log, "shop", store)
        for view in VIEWS:
            assert counted(reader.rows(view)) == folded(log, shop.topic(view))


@pytest.mark.parametrize("seed", range(8))
def test_lost_last_writes_are_written_again(seed: int, shop: Shop, log: Log, path: Path) -> None:
    Story(shop, seed).go_on(40)
    with SqliteStore(path) as store:
        catch_up(log, "shop", store, together=1)
        lost = path.with_name("lost.db")
        shutil.copy(path, lost)
        wal = path.with_name("views.db-wal").read_bytes()
    cut = random.Random(seed).randrange(len(wal))
    lost.with_name("lost.db-wal").write_bytes(wal[:cut])
    with SqliteStore(lost) as store:
        before = store.position()
        assert before is None or before.frame < log.mark().next_frame
        catch_up(log, "shop", store)
    for view in VIEWS:
        assert counted(rows(lost, view)) == folded(log, shop.topic(view))
