"""Look-ups: keys are given as text, and found as what they are."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from penstock.errors import StoreUnavailable, ViewError
from penstock.log import Log
from penstock.views import SqliteStore, catch_up
from penstock.views.lookup import Lookup
from tests.views.shop import Declared, Shop

SCHEMA = "at TIMESTAMP, day DATE, n INT, price DECIMAL(5,2), ok BOOLEAN, x DOUBLE, tags ARRAY<INT>, s STRING, v INT"
KEY = ("at", "day", "n", "price", "ok", "x", "tags", "s")
ROW = {
    "at": datetime(2024, 1, 31, 12, tzinfo=UTC),
    "day": date(2024, 1, 31),
    "n": -3,
    "price": Decimal("1.50"),
    "ok": True,
    "x": 0.5,
    "tags": [1, 2],
    "s": "",
    "v": 7,
}
TEXTS = ["2024-01-31T13:00:00+01:00", "2024-01-31", "-3", "1.5", "true", "0.5", "[1, 2]", ""]


@pytest.fixture
def looking(log: Log, store: SqliteStore, path: Path) -> Lookup:
    shop = Shop(log, views={"all": Declared(SCHEMA, key=KEY)})
    shop.announce()
    shop.batch(all=[(None, ROW)])
    catch_up(log, "shop", store)
    return Lookup(path)


def test_keys_of_every_type_are_found_by_their_text(looking: Lookup) -> None:
    found = looking.row("ALL", TEXTS)
    assert list(found) == [ROW]
    assert found.position == looking.position()
    assert list(looking.row("all", [*TEXTS[:2], "4", *TEXTS[3:]])) == []


def test_what_cannot_be_in_a_key_is_told(looking: Lookup) -> None:
    with pytest.raises(ViewError, match='"soon" cannot be in column "at" of view "all"'):
        looking.row("all", ["soon", *TEXTS[1:]])
    with pytest.raises(ViewError, match='the key of view "all" has 8 columns'):
        looking.row("all", TEXTS[:1])
    with pytest.raises(ViewError, match='view "none" does not exist'):
        looking.row("none", TEXTS)


def test_a_store_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="there is no store"):
        Lookup(tmp_path / "none").row("all", TEXTS)
