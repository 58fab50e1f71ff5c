"""The contract, second part: what a record can hold, comes back equal or is refused with the field named."""

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import SchemaError
from penstock.log import Log, Record
from penstock.log.correction import Correction
from penstock.log.topic import EventTime
from tests.log.contract import NOON, ORDERS, SECOND, Opener, orders
from tests.texts import refused

# What a record carries


def test_a_record_carries_headers(shop: Log) -> None:
    shop.append("orders", [Record(orders(1)[0], headers={"trace": b"\x00\xff", "": b""}), orders(2)[0]])
    assert [entry.headers for entry in shop.read("orders")] == [{"trace": b"\x00\xff", "": b""}, {}]


def test_a_record_can_mark_a_deletion_and_needs_only_its_key(log: Log) -> None:
    log.create_topic("orders", "id INT NOT NULL, customer STRING NOT NULL", key="id")
    log.append("orders", [{"id": 1, "customer": "ann"}, Record({"id": 1}, deleted=True)])
    kept, deleted = log.read("orders")
    assert (kept.deleted, deleted.deleted) == (False, True)
    assert (deleted.key, deleted.value) == ((1,), {"id": 1, "customer": None})


def test_a_deletion_without_its_key_is_refused(log: Log) -> None:
    log.create_topic("orders", "id INT NOT NULL, customer STRING NOT NULL", key="id")
    with refused("log/deletion-without-key"):
        log.append("orders", [Record({"customer": "ann"}, deleted=True)])


def test_a_record_can_carry_the_row_that_it_replaces(shop: Log) -> None:
    old, new = orders(1)[0], {"id": 1, "customer": "bea"}
    shop.append("orders", [old, Record(new, replaces=old)])
    assert [entry.replaces for entry in shop.read("orders")] == [None, {**old, "at": None}]


def test_a_record_has_its_key_and_event_time(log: Log) -> None:
    log.create_topic("visits", "page STRING, user INT, at TIMESTAMP", key=("user", "page"), event_time="at")
    log.append("visits", [{"page": "/", "user": 7, "at": NOON}])
    (entry,) = log.read("visits")
    assert (entry.key, entry.time) == ((7, "/"), NOON)


def test_a_raw_topic_keeps_keys_values_and_times_byte_for_byte(log: Log) -> None:
    log.create_topic("raw")
    log.append("raw", [b"", b"\x00\xff", Record(b"v", key=b"k", time=NOON, headers={"h": b"1"})])
    assert [(e.key, e.value, e.time, e.headers) for e in log.read("raw")] == [
        (None, b"", None, {}),
        (None, b"\x00\xff", None, {}),
        (b"k", b"v", NOON, {"h": b"1"}),
    ]


def test_a_raw_record_without_a_value_is_a_deletion(log: Log) -> None:
    log.create_topic("raw")
    log.append("raw", [Record(b"v", key=b"k"), Record(None, key=b"k")])
    assert [(e.key, e.value, e.deleted) for e in log.read("raw")] == [(b"k", b"v", False), (b"k", None, True)]


# Values

BIG = 2**63 - 1
FIRST, LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
SAMPLES: list[tuple[str, list[Any]]] = [
    ("BOOLEAN", [True, False]),
    ("TINYINT", [-128, 127]),
    ("SMALLINT", [-(2**15), 2**15 - 1]),
    ("INT", [-(2**31), 2**31 - 1]),
    ("BIGINT", [-BIG - 1, BIG, 0]),
    ("FLOAT", [0.5, math.inf, -math.inf]),
    ("DOUBLE", [0.1, 5e-324, 1.7976931348623157e308, -math.inf]),
    ("DECIMAL(38,10)", [Decimal("9" * 28 + "." + "9" * 10), Decimal("-0.0000000001")]),
    ("DECIMAL(5,0)", [Decimal(99999), Decimal(-99999)]),
    ("STRING", ["", "ä€😀", "a\x00b", "x" * 10_000]),
    ("BINARY", [b"", b"\x00\xff" * 1000]),
    ("DATE", [date(1, 1, 1), date(9999, 12, 31)]),
    ("TIMESTAMP", [FIRST, LAST]),
    ("TIMESTAMP_NTZ", [FIRST.replace(tzinfo=None), LAST.replace(tzinfo=None)]),
    ("ARRAY<INT>", [[], [1, None, 3]]),
    ("MAP<STRING, INT>", [[], [("a", 1), ("b", None)]]),
    ("STRUCT<a: INT, b: STRUCT<c: STRING>>", [{"a": 1, "b": {"c": "x"}}, {"a": None, "b": None}]),
    (
        "ARRAY<MAP<STRING, STRUCT<x: DOUBLE, y: ARRAY<DATE>>>>",
        [[[("k", {"x": 1.5, "y": [None, date(2026, 1, 1)]})], None]],
    ),
]


@pytest.mark.parametrize(("type_", "samples"), SAMPLES, ids=[type_ for type_, _ in SAMPLES])
def test_values_of_every_type_come_back_equal(log: Log, type_: str, samples: list[Any]) -> None:
    log.create_topic("t", f"v {type_}")
    log.append("t", [{"v": each} for each in [*samples, None]] + [{}])
    assert [e.value["v"] for e in log.read("t")] == [*samples, None, None]  # type: ignore[index,call-overload]


@pytest.mark.parametrize("type_", ["FLOAT", "DOUBLE", "ARRAY<DOUBLE>"])
def test_not_a_number_and_negative_zero_come_back_as_they_are(log: Log, type_: str) -> None:
    log.create_topic("t", f"v {type_}")
    wrap = (lambda v: [v]) if "ARRAY" in type_ else (lambda v: v)
    log.append("t", [{"v": wrap(math.nan)}, {"v": wrap(-0.0)}])
    nan, zero = (e.value["v"][0] if "ARRAY" in type_ else e.value["v"] for e in log.read("t"))  # type: ignore[index,call-overload]
    assert math.isnan(nan) and zero == 0.0 and math.copysign(1, zero) == -1


@pytest.mark.parametrize(
    ("type_", "given_", "kept"),
    [
        ("DOUBLE", 3, 3.0),
        ("DECIMAL(5,2)", 3, Decimal("3.00")),
        ("BINARY", bytearray(b"x"), b"x"),
        ("MAP<STRING, INT>", {"a": 1}, [("a", 1)]),
    ],
)
def test_values_that_lose_nothing_are_widened(log: Log, type_: str, given_: Any, kept: Any) -> None:
    log.create_topic("t", f"v {type_}")
    log.append("t", [{"v": given_}])
    assert [e.value for e in log.read("t")] == [{"v": kept}]


MISFITS: list[tuple[str, str, Any]] = [
    ("text-in-number", "BIGINT", "1"),
    ("fraction-in-number", "BIGINT", 1.5),
    ("truth-in-number", "INT", True),
    ("number-too-large", "TINYINT", 128),
    ("number-in-truth", "BOOLEAN", 1),
    ("truth-in-double", "DOUBLE", True),
    ("double-too-large-for-float", "FLOAT", 1e300),
    ("number-in-text", "STRING", 1),
    ("bytes-in-text", "STRING", b"x"),
    ("half-a-character", "STRING", "\ud800"),
    ("text-in-bytes", "BINARY", "x"),
    ("number-in-bytes", "BINARY", 5),
    ("time-in-date", "DATE", datetime(2026, 1, 1, 5)),
    ("number-in-date", "DATE", 5),
    ("date-in-time", "TIMESTAMP", date(2026, 1, 1)),
    ("text-in-time", "TIMESTAMP", "2026-01-01"),
    ("number-in-time", "TIMESTAMP", 5),
    ("zone-in-time-without", "TIMESTAMP_NTZ", NOON),
    ("decimal-too-fine", "DECIMAL(5,2)", Decimal("1.234")),
    ("decimal-too-large", "DECIMAL(5,2)", Decimal(1000)),
    ("double-in-decimal", "DECIMAL(5,2)", 1.5),
    ("no-decimal", "DECIMAL(5,2)", Decimal("NaN")),
    ("fraction-in-array", "ARRAY<INT>", [1, 1.5]),
    ("text-as-array", "ARRAY<STRING>", "abc"),
    ("fraction-in-map", "MAP<STRING, INT>", {"a": 1.5}),
    ("null-key-in-map", "MAP<STRING, INT>", [(None, 1)]),
    ("unknown-field-in-struct", "STRUCT<a: INT>", {"a": 1, "b": 2}),
    ("fraction-in-struct", "STRUCT<a: INT>", {"a": 1.5}),
    ("missing-in-struct", "STRUCT<a: INT NOT NULL>", {}),
    ("list-as-struct", "STRUCT<a: INT>", [1]),
]


@pytest.mark.parametrize(("name", "type_", "value"), MISFITS, ids=[name for name, _, _ in MISFITS])
def test_a_value_that_does_not_fit_refuses_the_whole_append(log: Log, name: str, type_: str, value: Any) -> None:
    log.create_topic("t", f"n INT, v {type_}")
    with refused(f"log/misfit/{name}"):
        log.append("t", [{"n": 1}, {"n": 2, "v": value}])
    assert log.ends("t") == (0,)


def test_a_misfit_in_a_replaced_row_is_refused(log: Log) -> None:
    log.create_topic("t", "v INT")
    with refused("log/misfit/in-replaced-row"):
        log.append("t", [Record({"v": 1}, replaces={"v": 1.5})])


def test_a_missing_value_of_a_not_null_column_is_refused(log: Log) -> None:
    log.create_topic("orders", ORDERS)
    with refused("log/missing-not-null"):
        log.append("orders", [{"id": 1}, {"customer": "ann"}])
    assert log.ends("orders") == (0,)


def test_an_unknown_field_is_refused_with_the_nearest_name(log: Log) -> None:
    log.create_topic("orders", ORDERS)
    with refused("log/unknown-field"):
        log.append("orders", [{"id": 1}, {"id": 2, "costumer": "ann"}])
    with refused("log/unknown-field-in-replaced-row"):
        log.append("orders", [Record({"id": 1}, replaces={"idd": 1})])
    with refused("log/unknown-column-of-a-table"):
        log.append("orders", pa.table({"id": [1], "costumer": ["ann"]}))
    with refused("log/column-twice"):
        log.append("orders", pa.table([[1], [2]], names=["id", "id"]))
    with refused("log/field-without-a-name"):
        log.append("orders", [{"id": 1, 5: "five"}])


@pytest.mark.parametrize(
    ("name", "topic", "record"),
    [
        ("not-a-row", "orders", b"bytes"),
        ("key-of-its-own", "orders", Record({"id": 1}, key=b"k")),
        ("not-bytes", "raw", {"id": 1}),
        ("raw-replaces", "raw", Record(b"x", replaces={"value": b"y"})),
        ("raw-key-not-bytes", "raw", Record(b"x", key="k")),  # type: ignore[arg-type]
        ("header-not-bytes", "raw", Record(b"x", headers={"h": 5})),  # type: ignore[dict-item]
        ("header-is-text", "raw", Record(b"x", headers={"h": "text"})),  # type: ignore[dict-item]
    ],
)
def test_a_record_that_does_not_suit_its_topic_is_refused(log: Log, name: str, topic: str, record: Any) -> None:
    log.create_topic("raw")
    log.create_topic("orders", ORDERS)
    with refused(f"log/record-{name}"):
        log.append(topic, [record])


def test_a_table_whose_column_would_lose_values_is_refused(log: Log) -> None:
    log.create_topic("t", "n INT, d DATE, f FLOAT")
    for name, column in {
        "fraction": {"n": pa.array([1.5])},
        "overflow": {"n": pa.array([2**40])},
        "time-of-day": {"d": pa.array([NOON])},
        "float-overflow": {"f": pa.array([1e300])},
    }.items():
        with refused(f"log/table-{name}"):
            log.append("t", pa.table(column))


def test_a_table_that_fits_after_widening_is_taken(log: Log) -> None:
    log.create_topic("t", "n BIGINT, s STRING")
    log.append("t", pa.table({"n": pa.array([1], pa.int8()), "s": pa.array(["x"], pa.large_string())}))
    assert [e.value for e in log.read("t")] == [{"n": 1, "s": "x"}]


KEPT: list[tuple[str, pa.Array, Any]] = [
    ("SMALLINT", pa.array([300], pa.uint64()), 300),
    ("DOUBLE", pa.array([0.5], pa.float32()), 0.5),
    ("DECIMAL(10,1)", pa.array([Decimal("1.50")], pa.decimal128(12, 2)), Decimal("1.5")),
    ("STRING", pa.array(["x"]).dictionary_encode(), "x"),
    ("BINARY", pa.array([b"x"], pa.binary(1)), b"x"),
    ("DATE", pa.array([date(2026, 1, 1)], pa.date64()), date(2026, 1, 1)),
    ("TIMESTAMP", pa.array([NOON], pa.timestamp("ns", "Europe/Rome")), NOON),
    ("TIMESTAMP_NTZ", pa.array([NOON.replace(tzinfo=None)], pa.timestamp("s")), NOON.replace(tzinfo=None)),
    ("ARRAY<INT>", pa.array([[1, 2]], pa.large_list(pa.int64())), [1, 2]),
    ("MAP<STRING, INT>", pa.array([[("a", 1)]], pa.map_(pa.large_string(), pa.int8())), [("a", 1)]),
    ("STRUCT<a: INT, b: INT>", pa.array([{"b": 1}]), {"a": None, "b": 1}),
    ("BIGINT", pa.nulls(1), None),
]


@pytest.mark.parametrize(("type_", "column", "kept"), KEPT, ids=[type_ for type_, _, _ in KEPT])
def test_a_column_that_only_lies_otherwise_in_memory_is_taken(
    log: Log, type_: str, column: pa.Array, kept: Any
) -> None:
    log.create_topic("t", f"v {type_}")
    log.append("t", pa.table({"v": column}))
    assert [e.value for e in log.read("t")] == [{"v": kept}]


OTHERS: list[tuple[str, str, pa.Array]] = [
    ("text-as-number", "BIGINT", pa.array(["12"])),
    ("truth-as-number", "BIGINT", pa.array([True])),
    ("number-as-truth", "BOOLEAN", pa.array([1])),
    ("double-as-number", "BIGINT", pa.array([1.0])),
    ("number-as-double", "DOUBLE", pa.array([1])),
    ("double-as-float", "FLOAT", pa.array([0.1])),
    ("double-as-decimal", "DECIMAL(10,2)", pa.array([1.239])),
    ("decimal-too-fine", "DECIMAL(10,2)", pa.array([Decimal("1.239")])),
    ("number-as-time", "TIMESTAMP", pa.array([5])),
    ("date-as-time", "TIMESTAMP", pa.array([date(2026, 1, 1)])),
    ("time-as-date", "DATE", pa.array([datetime(2026, 1, 1)])),
    ("time-too-fine", "TIMESTAMP", pa.array([1], pa.timestamp("ns"))),
    ("text-as-time", "TIMESTAMP", pa.array(["2026-01-01"])),
    ("number-as-text", "STRING", pa.array([1])),
    ("text-as-bytes", "BINARY", pa.array(["x"])),
    ("bytes-as-text", "STRING", pa.array([b"x"])),
    ("text-in-array", "ARRAY<INT>", pa.array([["1"]])),
    ("text-in-map", "MAP<STRING, INT>", pa.array([[("a", "1")]], pa.map_(pa.string(), pa.string()))),
    ("text-in-struct", "STRUCT<a: INT>", pa.array([{"a": "1"}])),
    ("unknown-in-struct", "STRUCT<a: INT>", pa.array([{"a": 1, "b": 2}])),
]


@pytest.mark.parametrize(("name", "type_", "column"), OTHERS, ids=[name for name, _, _ in OTHERS])
def test_a_column_of_another_kind_is_refused(log: Log, name: str, type_: str, column: pa.Array) -> None:
    log.create_topic("t", f"v {type_}")
    with pytest.raises(SchemaError, match='column "v" does not fit topic "t"'):
        log.append("t", pa.table({"v": column}))
    assert log.ends("t") == (0,)


NEEDED = "STRUCT<a: INT NOT NULL>"
INNER = pa.struct([("a", pa.int32())])
HOLLOW: list[tuple[str, pa.Array]] = [
    (NEEDED, pa.array([None, {"a": 1}, {"a": None}], INNER)),
    (f"ARRAY<{NEEDED}>", pa.array([[], None, [None, {"a": None}]], pa.list_(INNER))),
    (f"MAP<INT, {NEEDED}>", pa.array([[], None, [(1, {"a": None})]], pa.map_(pa.int32(), INNER))),
    (f"STRUCT<s: {NEEDED}>", pa.array([None, {"s": None}, {"s": {"a": None}}], pa.struct([("s", INNER)]))),
]


@pytest.mark.parametrize(("type_", "column"), HOLLOW, ids=[type_ for type_, _ in HOLLOW])
def test_a_missing_value_inside_a_column_is_refused(log: Log, type_: str, column: pa.Array) -> None:
    log.create_topic("t", f"v {type_}")
    log.append("t", pa.table({"v": column[:2]}))
    with pytest.raises(SchemaError, match=r'field "v" of record 2 does not fit topic "t"\n.*Its field "a" is NULL'):
        log.append("t", pa.table({"v": column}))


DAYS_TO_10000 = 2932897
UNREADABLE: list[tuple[str, Any]] = [
    ("TIMESTAMP", datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))),
    ("TIMESTAMP", pa.scalar(2**62, pa.timestamp("us", "UTC"))),
    ("TIMESTAMP_NTZ", pa.scalar(-(2**62), pa.timestamp("us"))),
    ("DATE", pa.scalar(DAYS_TO_10000, pa.date32())),
    ("ARRAY<DATE>", pa.array([[DAYS_TO_10000]], pa.list_(pa.date32()))[0]),
]


@pytest.mark.parametrize(("type_", "value"), UNREADABLE)
def test_a_time_that_could_not_be_read_back_is_refused(log: Log, type_: str, value: Any) -> None:
    log.create_topic("t", f"v {type_}")
    rows: Any = pa.table({"v": pa.array([value], value.type)}) if isinstance(value, pa.Scalar) else [{"v": value}]
    with pytest.raises(SchemaError, match=r'field "v" of record 0 does not fit topic "t"\n.*the years 1 to 9999'):
        log.append("t", rows)


@pytest.mark.parametrize("deleted", [{}, {"_deleted": pa.array([None, False])}], ids=["unmarked", "marked"])
def test_a_row_of_a_raw_table_without_a_value_is_a_deletion(log: Log, deleted: dict[str, pa.Array]) -> None:
    log.create_topic("raw")
    log.append("raw", pa.table({"key": [b"k", b"k"], "value": [b"v", None], **deleted}))
    assert [(e.value, e.deleted) for e in log.read("raw")] == [(b"v", False), (None, True)]


def test_a_table_with_marks_marks_nothing_where_they_are_null(log: Log) -> None:
    log.create_topic("orders", ORDERS, key="id")
    log.append("orders", pa.table({"id": [1, 2], "_deleted": pa.array([None, True])}))
    assert [e.deleted for e in log.read("orders")] == [False, True]
    with pytest.raises(SchemaError, match='field "id" of record 0 is missing'):
        log.append("orders", pa.table({"id": pa.nulls(1, pa.int64()), "_deleted": pa.nulls(1, pa.bool_())}))


# Schemas that grow


def test_a_nullable_column_can_be_added_and_is_null_in_older_records(log: Log, open_log: Opener) -> None:
    log.create_topic("orders", ORDERS, key="id")
    log.append("orders", [Record({"id": 1}, replaces={"id": 0})])
    other = open_log()
    grown = log.change_schema("orders", ORDERS + ", note STRING")
    assert str(grown.schema) == str(other.topic("orders").schema) == ORDERS + ", note STRING"
    other.append("orders", [{"id": 2, "note": "x"}])
    assert [e.value["note"] for e in log.read("orders")] == [None, "x"]  # type: ignore[index,call-overload]
    assert [e.replaces and e.replaces["note"] for e in log.read("orders")] == [None, None]


def test_changing_a_schema_to_itself_changes_nothing(log: Log) -> None:
    made = log.create_topic("orders", ORDERS)
    assert log.change_schema("orders", ORDERS) == made


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("type", "id INT NOT NULL, customer STRING, at TIMESTAMP"),
        ("nullable", "id BIGINT, customer STRING, at TIMESTAMP"),
        ("renamed", "id BIGINT NOT NULL, client STRING, at TIMESTAMP"),
        ("gone", "id BIGINT NOT NULL, customer STRING"),
        ("order", "customer STRING, id BIGINT NOT NULL, at TIMESTAMP"),
        ("new-not-null", ORDERS + ", note STRING NOT NULL"),
        ("new-in-the-middle", "id BIGINT NOT NULL, note STRING, customer STRING, at TIMESTAMP"),
        ("hidden", ORDERS + ", _offset BIGINT"),
    ],
)
def test_any_other_change_of_a_schema_is_refused(log: Log, name: str, schema: str) -> None:
    made = log.create_topic("orders", ORDERS)
    with refused(f"log/schema-{name}"):
        log.change_schema("orders", schema)
    assert log.topic("orders") == made


def test_the_columns_of_a_raw_topic_cannot_change(log: Log) -> None:
    log.create_topic("raw")
    with refused("log/schema-raw"):
        log.change_schema("raw", "key BINARY, value BINARY, time TIMESTAMP, more STRING")


# Event times

READINGS = "id INT, made TIMESTAMP, sent TIMESTAMP, got TIMESTAMP, at TIMESTAMP"


def test_corrected_event_times_are_made_when_records_are_appended(log: Log) -> None:
    time = EventTime("at", corrected=Correction("made", "sent", "got", timedelta(hours=1)))
    log.create_topic("readings", READINGS, event_time=time)
    hour, wrong = 3600 * SECOND, NOON.replace(year=1970)
    rows = [
        {"made": NOON, "sent": NOON + 10 * SECOND, "got": NOON + 40 * SECOND, "at": wrong},  # 30 s behind
        {"made": NOON, "sent": NOON + hour, "got": NOON + SECOND},  # 59:59 ahead
        {"made": NOON, "sent": NOON, "got": NOON + hour},  # just within the bound
        {"made": NOON, "sent": NOON, "got": NOON + hour + SECOND},  # beyond it
        {"made": NOON, "got": NOON + SECOND},
        {"made": NOON, "sent": NOON},
        {"sent": NOON, "got": NOON + 2 * SECOND},
        {},
    ]
    log.append("readings", rows)
    found = [entry.value["at"] for entry in log.read("readings")]  # type: ignore[index,call-overload]
    offsets = [30 * SECOND, -hour + SECOND, hour, hour + SECOND, SECOND, 0 * SECOND, 2 * SECOND]
    assert found == [*(NOON + each for each in offsets), None]


def test_what_is_read_of_corrected_times_can_be_appended_again(log: Log) -> None:
    time = EventTime("at", corrected=Correction("made", "sent", "got"))
    for name in ("readings", "copy"):
        log.create_topic(name, READINGS, event_time=time)
    log.append("readings", [{"made": NOON, "sent": NOON, "got": NOON + SECOND}])
    (batch,) = log.batches("readings", columns=["id", "made", "sent", "got", "at"])
    log.append("copy", batch)
    log.append("copy", batch.drop_columns(["at"]))
    assert [entry.time for entry in log.read("copy")] == [NOON + SECOND] * 2


def test_a_topic_that_cannot_be_corrected_so_is_refused(log: Log) -> None:
    for columns in (("made", "sent", "at"), ("made", "sent", "id")):
        with pytest.raises(SchemaError, match="cannot be corrected so"):
            log.create_topic("readings", READINGS, event_time=EventTime("at", corrected=Correction(*columns)))
    with refused("log/no-topic-plausible"):
        log.create_topic("orders", ORDERS, event_time=EventTime("at", plausible=timedelta(days=-1)))
