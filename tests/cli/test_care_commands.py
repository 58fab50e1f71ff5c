"""`penstock log retain`, `compact`: how long records are kept."""

import json

import pytest

from penstock.log import Log
from tests.cli.conftest import Penstock
from tests.cli.test_log_commands import ids, orders
from tests.texts import assert_golden


def test_records_go_when_asked(shop: Penstock) -> None:
    shop("append", "orders", given=orders(3))
    assert shop("retain").out == "nothing to let go\n"
    told = shop("retain", "orders", "--for", "0 seconds").lines
    assert told[0] == 'topic "orders": records are kept for 0 seconds'
    assert told[1].startswith("orders: 3 records gone, ") and ids(shop) == []
    shop("retain", "orders", "--forever")
    shop("append", "orders", given=orders(1))
    assert [json.loads(line)["_offset"] for line in shop("read", "orders", "--hidden").lines] == [3]
    shop.refused("read_what_is_gone", "read", "orders", "--offset", "1")


def test_how_long_records_are_kept_is_said_and_shown(shop: Penstock) -> None:
    shop("create", "clicks", "--keep-for", "7 days", "--keep-bytes", "2 GB", "--keep-unread")
    assert_golden("cli/describe_retention", shop("describe", "clicks").out.rstrip())
    assert "for 1 hour and" in shop("retain", "clicks", "--for", "1 hour").out
    said = shop("retain", "clicks", "--forever", "--no-unread").lines
    assert said == ['topic "clicks": records are kept for ever', "nothing to let go"]
    with Log.open(shop.folder / "log") as log:
        assert not log.topic("clicks").retention.ends


def test_the_largest_topics_lose_their_oldest_records(shop: Penstock) -> None:
    for _ in range(3):
        shop("append", "orders", given=orders(10))
        with Log.open(shop.folder / "log") as log:
            log.seal()
    shop("retain", "orders", "--bytes", "1kB")
    assert_golden("cli/describe_begun", shop("describe", "orders").out.rstrip())


def test_topics_are_copied_to_another_log(shop: Penstock) -> None:
    shop("append", "orders", given=orders(3))
    assert "orders: 3 records copied" in shop("copy", "log", "other", "orders").lines
    assert shop("copy", "log", "other").lines[-1].endswith(": 0 records copied")
    with Log.open(shop.folder / "other", create=False) as other:
        assert [entry.value["id"] for entry in other.read("orders")] == ids(shop)  # type: ignore[index,call-overload]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("copy_from_nowhere", ["elsewhere", "other"]),
        ("copy_to_no_log", ["log", "http://localhost"]),
        ("copy_with_no_settings", ["log", "other", "--settings", "missing.json"]),
    ],
)
def test_what_cannot_be_copied_is_refused(shop: Penstock, name: str, arguments: list[str]) -> None:
    shop.refused(name, "copy", *arguments)


@pytest.mark.parametrize("size", ["much", "1 XB", "-1"])
def test_what_is_no_size_is_refused(shop: Penstock, size: str) -> None:
    ran = shop.run("log", "retain", "orders", f"--bytes={size}")
    assert ran.code == 1 and f'"{size}" is no size' in ran.err


def test_a_retention_without_a_topic_is_refused(shop: Penstock) -> None:
    shop.refused("retain_without_topic", "retain", "--for", "1 day")


def test_a_topic_is_compacted_when_asked(shop: Penstock) -> None:
    assert shop("compact").out == "nothing to compact\n"
    for city in ("Rome", "Oslo"):
        shop("append", "customers", given=f'{{"id": 1, "city": "{city}"}}\n{{"id": 2, "city": "{city}"}}\n')
    assert shop("compact", "customers").out == "customers: 4 records, 2 left\n"
    assert [json.loads(line)["_offset"] for line in shop("read", "customers", "--hidden").lines] == [2, 3]
    assert shop("compact", "customers").out == "nothing to compact\n"
    shop("compact", "customers", "--always", "--deletions", "2 hours")
    assert_golden("cli/describe_compacted", shop("describe", "customers").out.rstrip())
    told = shop("compact", "customers", "--never").out
    assert told == 'topic "customers": records are kept for ever\n'
    shop.refused("compact_without_topic", "compact", "--always")
    shop.refused("compact_without_key", "compact", "orders")


def test_a_topic_may_be_compacted_from_the_beginning(penstock: Penstock) -> None:
    penstock("create", "t", "--schema", "k INT", "--key", "k", "--compacted")
    with Log.open(penstock.folder / "log") as log:
        assert log.topic("t").retention.compacted


def test_a_key_is_excised(shop: Penstock) -> None:
    shop("append", "customers", given='{"id": 1, "city": "Rome"}\n{"id": 2, "city": "Oslo"}\n')
    told = shop("excise", "customers", "1").lines
    assert told[0] == '1 record gone from topic "customers"' and told[1].endswith(" stands for the key in the log")
    assert shop("read", "customers").lines == ['{"id": 2, "city": "Oslo"}']
    shop("excise", "customers", "Oslo", "--column", "city")
    assert shop("read", "customers").lines == []


def test_what_cannot_be_excised_is_refused(shop: Penstock) -> None:
    shop.refused("excise_strange_value", "excise", "customers", "ann")
    shop.refused("excise_two_values", "excise", "customers", "1", "2")
    shop.refused("excise_without_key", "excise", "orders", "1")
