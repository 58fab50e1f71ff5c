"""`penstock log`: topics are made and shown, records go in and come out."""

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.log import Log
from tests.cli.conftest import Penstock
from tests.texts import assert_golden

ORDER = '{"id": 1, "customer": 7, "amount": "12.50", "at": "2024-05-01T09:00:00Z"}'


def orders(count: int) -> str:
    """Lines of JSON, the orders 1 to `count`."""
    return "".join(ORDER.replace('"id": 1', f'"id": {number}') + "\n" for number in range(1, count + 1))


def ids(penstock: Penstock, *arguments: str) -> list[int]:
    """The ids of the orders that `read` gives."""
    return [json.loads(line)["id"] for line in penstock("read", "orders", *arguments).lines]


# Topics


def test_topics_are_listed_with_what_they_are(shop: Penstock) -> None:
    shop("create", "clicks", "--partitions", "3")
    shop("append", "orders", given=orders(2))
    assert_golden("cli/topics", shop("topics").out.rstrip())


def test_a_topic_is_described(shop: Penstock) -> None:
    shop("append", "orders", given=orders(2))
    assert_golden("cli/describe", shop("describe", "orders").out.rstrip())


def test_producers_that_have_joined_are_described(penstock: Penstock) -> None:
    schema = ("--schema", "id INT, at TIMESTAMP", "--event-time", "at")
    penstock("create", "readings", *schema, "--plausible", "1 hour")
    penstock.refused("create_plausible", "create", "readings", *schema)
    penstock("append", "readings", "--producer", "meter", given='{"id": 1, "at": "2024-01-01T00:00:00Z"}')
    with Log.open(penstock.folder / "log") as log:
        log.producer("meter").join("readings", datetime(2024, 1, 2, tzinfo=UTC))
        log.append("readings", [{"id": 2, "at": datetime(2024, 1, 3, tzinfo=UTC)}], producer="meter", sequence=7)
        log.append("readings", [{"id": 3, "at": datetime(9000, 1, 1, tzinfo=UTC)}])
    assert_golden("cli/describe_producers", penstock("describe", "readings").out.rstrip())


def test_a_topic_that_is_created_again_stays_as_it_is(shop: Penstock) -> None:
    again = shop("create", "customers", "--schema", "id BIGINT NOT NULL, city STRING", "--key", "id")
    assert again.out == 'topic "customers" is there already: table, key id\n'


def test_a_key_may_have_several_columns(penstock: Penstock) -> None:
    made = penstock("create", "prices", "--schema", "shop INT, item INT", "--key", "shop", "--key", "item")
    assert made.out == 'topic "prices" created: table, key shop, item\n'


def test_a_topic_is_not_created_otherwise(shop: Penstock) -> None:
    shop.refused("create_otherwise", "create", "customers", "--schema", "id BIGINT, city STRING")


def test_an_added_column_is_null_in_older_records(shop: Penstock) -> None:
    shop("append", "customers", given='{"id": 1, "city": "Rome"}')
    shop("add-column", "customers", "vip BOOLEAN, since DATE")
    shop("append", "customers", given='{"id": 2, "vip": true, "since": "2024-05-01"}')
    assert shop("read", "customers").lines == [
        '{"id": 1, "city": "Rome", "vip": null, "since": null}',
        '{"id": 2, "city": null, "vip": true, "since": "2024-05-01"}',
    ]


def test_without_a_log_the_commands_say_how_to_name_one(penstock: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_LOG")
    penstock.refused("no_log_named", "topics")


def test_a_log_that_is_not_there_is_not_made_by_reading(penstock: Penstock) -> None:
    penstock.refused("no_log", "topics", "--log", penstock.folder / "elsewhere")
    assert not (penstock.folder / "elsewhere").exists()


def test_a_topic_that_is_not_there_is_named(shop: Penstock) -> None:
    shop.refused("no_topic", "read", "order")


# Appending


def test_json_lines_are_appended_and_read(shop: Penstock) -> None:
    ran = shop("append", "orders", given=orders(3) + "\n")
    assert (ran.out, ran.err) == ("", '3 records appended to "orders"\n')
    assert shop("read", "orders").out == orders(3)


def test_csv_is_appended_by_the_files_name(shop: Penstock) -> None:
    shop("append", "customers", "--from", shop.file("c.csv", '\ufeffcity,id\n"Rome, north",1\n,2\n'))
    assert shop("read", "customers").lines == ['{"id": 1, "city": "Rome, north"}', '{"id": 2, "city": null}']


@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize("make", [pa.ipc.new_file, pa.ipc.new_stream])
def test_arrow_files_and_streams_are_appended(shop: Penstock, make: object, *, piped: bool) -> None:
    table = pa.table({"id": pa.array([1, 2], pa.int32()), "city": ["Rome", None]})
    data = io.BytesIO()
    with make(data, table.schema) as writer:  # type: ignore[operator]
        writer.write_table(table)
    source = ["--format", "arrow"] if piped else ["--from", str(shop.file("c.arrow", data.getvalue()))]
    shop("append", "customers", *source, given=data.getvalue())
    assert shop("read", "customers").lines == ['{"id": 1, "city": "Rome"}', '{"id": 2, "city": null}']


def test_a_record_may_delete_have_headers_and_name_what_it_replaces(shop: Penstock) -> None:
    line = (
        '{"id": 1, "city": "Oslo", "_headers": {"by": "ann"}, "_headers_base64": {"token": "/w=="}, '
        '"_replaces": {"id": 1, "city": "Rome"}}\n'
    )
    gone = '{"id": 2, "city": null, "_deleted": true}\n'
    shop("append", "customers", given=line + gone)
    assert shop("read", "customers").out == line + gone


def test_a_raw_topic_takes_text_and_base64(penstock: Penstock) -> None:
    penstock("create", "raw")
    lines = (
        '{"key": "k", "value": "h\u00e9", "time": "2024-05-01T09:00:00Z"}\n'
        '{"key": null, "value_base64": "/w==", "time": null}\n'
        '{"key": "k", "value": null, "time": null, "_deleted": true}\n'
    )
    penstock("append", "raw", given=lines)
    assert penstock("read", "raw").out == lines


def test_a_batch_with_an_error_is_not_written_and_those_before_are(shop: Penstock) -> None:
    source = shop.file("orders.jsonl", orders(4) + ORDER.replace("12.50", "12,50"))
    shop.refused("bad_value", "append", "orders", "--from", source, "--batch-size", "2")
    assert ids(shop) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("unknown_field", '{"id": 1, "costumer": 7}'),
        ("missing_field", '{"customer": 7}'),
        ("value_too_large", '{"id": 9223372036854775808}'),
        ("number_for_a_time", '{"id": 1, "at": 1714554000}'),
        ("half_a_character", '{"id": 1, "_headers": {"a": "\\ud800"}}'),
        ("broken_json", '{"id": 1'),
        ("not_an_object", "[1, 2]"),
        ("not_utf8", b'{"id": "\xff"}'),
        ("not_base64", '{"id": 1, "_headers_base64": {"a": "?"}}'),
    ],
)
def test_an_error_names_the_line(shop: Penstock, name: str, line: str | bytes) -> None:
    data = line if isinstance(line, bytes) else line.encode()
    shop.refused(name, "append", "orders", given=orders(1).encode() + data)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("csv_header", "id,town\n"),
        ("csv_header_twice", "id,id\n"),
        ("csv_length", 'id,city\n1,"Rome\nnorth"\n2,Oslo,x\n'),
        ("csv_value", "id,city\nx,Rome\n"),
        ("csv_quotes", 'id,city\n1,"Rome" x\n'),
    ],
)
def test_an_error_in_csv_names_the_line(shop: Penstock, name: str, text: str) -> None:
    shop.refused(name, "append", "customers", "--from", shop.file("c.csv", text))


def test_a_value_inside_another_is_named_by_its_path(penstock: Penstock) -> None:
    penstock("create", "people", "--schema", "id INT, homes ARRAY<STRUCT<city: STRING, zip: INT>>")
    penstock.refused("nested_value", "append", "people", given='{"id": 1, "homes": [{"zip": 1}, {"zip": "x"}]}')


def test_an_arrow_column_that_does_not_fit_is_named(shop: Penstock) -> None:
    data = io.BytesIO()
    table = pa.table({"id": ["x"], "city": ["Rome"]})
    with pa.ipc.new_stream(data, table.schema) as writer:
        writer.write_table(table)
    ran = shop.run("log", "append", "customers", "--format", "arrow", given=data.getvalue())
    assert (ran.code, 'column "id" does not fit' in ran.err) == (1, True)
    assert "standard input, records 0 to 0: " in ran.err


def test_text_is_not_taken_for_arrow(shop: Penstock) -> None:
    ran = shop.run("log", "append", "orders", "--format", "arrow", given=orders(1))
    assert (ran.code, ran.err.splitlines()[0]) == (1, "standard input is not an Arrow IPC file or stream")


# A producer


def test_a_producers_second_run_appends_nothing(shop: Penstock) -> None:
    source = shop.file("orders.jsonl", orders(5))
    command = ("append", "orders", "--from", source, "--batch-size", "2", "--producer", "till")
    assert shop(*command).err == '5 records appended to "orders"\n'
    assert shop(*command).err == '0 records appended to "orders"; 5 were there already\n'
    assert ids(shop) == [1, 2, 3, 4, 5]


def test_a_producer_goes_on_where_a_run_ended(shop: Penstock) -> None:
    source = shop.file("orders.jsonl", orders(4) + "oops\n")
    command = ("append", "orders", "--from", source, "--batch-size", "2", "--producer", "till")
    shop.refused("producer_bad_line", *command)
    shop.file("orders.jsonl", orders(5))
    assert shop(*command).err == '1 record appended to "orders"; 4 were there already\n'
    assert ids(shop) == [1, 2, 3, 4, 5]


def test_another_source_under_the_same_producer_is_refused(shop: Penstock) -> None:
    source = shop.file("orders.jsonl", orders(4))
    shop("append", "orders", "--from", source, "--producer", "till")
    shop.file("orders.jsonl", orders(4).replace("12.50", "13.50"))
    shop.refused("producer_other_source", "append", "orders", "--from", source, "--producer", "till")


def test_another_topic_under_the_same_producer_is_refused(shop: Penstock) -> None:
    source = shop.file("ids.jsonl", '{"id": 1}\n')
    shop("append", "orders", "--from", source, "--producer", "till")
    shop.refused("producer_other_topic", "append", "customers", "--from", source, "--producer", "till")


def test_another_batch_size_under_the_same_producer_is_refused(shop: Penstock) -> None:
    source = shop.file("orders.jsonl", orders(4))
    command = ("append", "orders", "--from", source, "--producer", "till", "--batch-size")
    shop(*command, "2")
    assert shop.run("log", *command, "3").code == 1
    assert ids(shop) == [1, 2, 3, 4]


# Reading


def test_reading_begins_at_an_offset_a_place_or_a_time(shop: Penstock) -> None:
    shop("append", "orders", "--batch-size", "2", given=orders(5))
    stamps = [json.loads(line) for line in shop("read", "orders", "--hidden").lines]
    assert [each["_place"] for each in stamps] == ["2:0", "2:1", "3:0", "3:1", "4:0"]
    assert ids(shop, "--offset", "3") == [4, 5]
    assert ids(shop, "--place", "3") == [3, 4, 5]
    assert ids(shop, "--place", "3:1") == [4, 5]
    assert ids(shop, "--time", stamps[4]["_appended_at"]) == [
        each["id"] for each in stamps if each["_appended_at"] >= stamps[4]["_appended_at"]
    ]


def test_reading_can_be_limited_to_records_columns_and_a_partition(shop: Penstock) -> None:
    shop("append", "orders", given=orders(5))
    assert shop("read", "orders", "--limit", "2", "--columns", "_offset,id").lines == [
        '{"_offset": 0, "id": 1}',
        '{"_offset": 1, "id": 2}',
    ]
    assert ids(shop, "--partition", "0", "--limit", "0") == []
    shop.refused("no_partition", "read", "orders", "--partition", "1")
    shop.refused("no_column", "read", "orders", "--columns", "id,costumer")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("bad_place", ["--place", "3:x"]),
        ("bad_time", ["--time", "yesterday"]),
        ("two_starts", ["--place", "3", "--offset", "1"]),
    ],
)
def test_a_start_that_cannot_be_understood_is_refused(shop: Penstock, name: str, arguments: list[str]) -> None:
    shop.refused(name, "read", "orders", *arguments)


def test_records_are_shown_as_csv_and_as_a_table(shop: Penstock) -> None:
    shop("append", "customers", given='{"id": 1, "city": "Rome"}\n{"id": 20, "_deleted": true}\n')
    assert_golden("cli/read_csv", shop("read", "customers", "--format", "csv").out.rstrip())
    assert_golden("cli/read_table", shop("read", "customers", "--format", "table").out.rstrip())


def test_a_long_table_says_that_there_is_more(shop: Penstock) -> None:
    shop("append", "orders", given=orders(101))
    ran = shop("read", "orders", "--format", "table")
    assert (len(ran.lines), ran.err) == (101, "The first 100 records; --limit shows more.\n")


def test_arrow_is_a_stream_of_the_topics_columns(shop: Penstock) -> None:
    shop("append", "orders", given=orders(3))
    table = pa.ipc.open_stream(shop("read", "orders", "--format", "arrow").data).read_all()
    assert table.schema.names == ["id", "customer", "amount", "at", "_deleted"]
    assert table.column("id").to_pylist() == [1, 2, 3]


def test_an_empty_topic_is_an_empty_arrow_stream_with_its_columns(shop: Penstock) -> None:
    table = pa.ipc.open_stream(shop("read", "orders", "--format", "arrow", "--hidden").data).read_all()
    assert (len(table), table.schema.names[:4]) == (0, ["_partition", "_offset", "_place", "_appended_at"])


# Every type, there and back

EVERYTHING = (
    "a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT, f FLOAT, g DOUBLE, h DECIMAL(20,4), i STRING, "
    "j BINARY, k DATE, l TIMESTAMP, m TIMESTAMP_NTZ, n ARRAY<INT>, o MAP<STRING, DOUBLE>, "
    "p STRUCT<x: INT, y: ARRAY<DATE>>, q MAP<INT, BINARY>"
)
ROWS = (
    '{"a": true, "b": -128, "c": 32767, "d": 5, "e": -9223372036854775808, "f": 0.1, "g": "NaN", '
    '"h": "-12.3400", "i": "say \\"hi\\", \u00e9", "j": "00ff", "k": "1969-12-31", '
    '"l": "2024-05-01T09:00:00.000001Z", "m": "2024-05-01T09:00:00", "n": [1, null], '
    '"o": {"a": "-Infinity", "b": null}, '
    '"p": {"x": 1, "y": ["2024-05-01"]}, "q": {"7": "ab"}}\n' + json.dumps(dict.fromkeys("abcdefghijklmnopq")) + "\n"
)


@pytest.mark.parametrize("hidden", [[], ["--hidden"]])
@pytest.mark.parametrize("form", ["json", "csv", "arrow"])
def test_what_is_read_can_be_appended_again(penstock: Penstock, form: str, hidden: list[str]) -> None:
    for topic in ("one", "two"):
        penstock("create", topic, "--schema", EVERYTHING)
    penstock("append", "one", given=ROWS)
    penstock("append", "two", "--format", form, given=penstock("read", "one", "--format", form, *hidden).data)
    assert penstock("read", "two").out == penstock("read", "one").out == ROWS


# Damage


def flip(path: Path, byte: int) -> None:
    data = bytearray(path.read_bytes())
    data[byte] ^= 1
    path.write_bytes(data)


def test_a_whole_log_passes_the_check(shop: Penstock) -> None:
    shop("append", "orders", given=orders(3))
    assert shop("check").out == "1 file, 3 frames, 3 records: no damage\n"


def test_the_check_names_what_is_damaged(shop: Penstock) -> None:
    shop("append", "orders", "--batch-size", "1", given=orders(3))
    [journal] = (shop.folder / "log" / "journal").iterdir()
    amount = (1250).to_bytes(16, "little")
    second = journal.read_bytes().split(amount)[:2]
    flip(journal, len(amount.join(second)))
    ran = shop.run("log", "check")
    assert ran.code == 1
    assert_golden("cli/check_damage", ran.out.rstrip())


def test_describe_tells_what_was_set_aside(shop: Penstock) -> None:
    shop("append", "orders", given=orders(3))
    [journal] = (shop.folder / "log" / "journal").iterdir()
    with journal.open("ab") as file:
        file.write(b"torn")
    assert "a torn write was set aside" in shop("describe", "orders").out
    assert "a torn write was set aside" in shop("check").out


def test_a_sealed_log_is_checked_too(shop: Penstock) -> None:
    shop("append", "orders", given=orders(3))
    with Log.open(shop.folder / "log") as log:
        log.seal()
    assert shop("check").out == "2 files, 3 frames, 3 records: no damage\n"


# The command line itself


def test_an_error_has_a_traceback_only_with_debug(shop: Penstock) -> None:
    with pytest.raises(Exception, match='topic "order" does not exist'):
        shop.run("log", "read", "order", "--debug")


def test_a_mistake_on_the_command_line_exits_with_2(shop: Penstock) -> None:
    ran = shop.run("log", "raed")
    assert (ran.code, "Did you mean 'read'" in ran.err) == (2, True)


def test_the_version_is_told(penstock: Penstock) -> None:
    assert penstock.run("--version").out.startswith("penstock ")


def test_what_is_said_of_event_times_moves_the_watermark(shop: Penstock) -> None:
    shop("create", "clicks", "--schema", "id BIGINT, at TIMESTAMP", "--event-time", "at")
    assert "nothing before 2024-05-01T12:00:00Z any more" in shop("punctuate", "clicks", "2024-05-01T12:00:00Z").out
    assert "this changes nothing" in shop("punctuate", "clicks", "2024-05-01T11:00:00Z").out
    shop("punctuate", "clicks", "2024-05-02", "--scope", "night")
    shop("join", "clicks", "one", "--until", "2024-05-01T10:00:00Z")
    shop("join", "clicks", "two")
    shop("announce", "clicks", "two", "2024-05-01T13:00:00Z")
    shop("leave", "clicks", "one")
    with Log.open(shop.folder / "log") as log:
        noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
        assert log.watermark("clicks") == noon
        assert log.watermark("clicks", scope="night") == datetime(2024, 5, 2, tzinfo=UTC)
        assert log.watermark("clicks", by="producer") == noon + timedelta(hours=1)
    shop.refused("bad_time", "punctuate", "clicks", "yesterday")
    shop.refused("no_topic_punctuated", "punctuate", "click", "2024-05-01")
    shop.refused("not_joined", "announce", "clicks", "three", "2024-05-01")
