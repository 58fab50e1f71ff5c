"""What messages are read as: cases that Python's reading and the kernel's are both held to.

A value that cannot be read has `Bad` with the reason.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from penstock.log.correction import Correction
from penstock.log.kafka.avro import Values
from penstock.log.topic import RAW, Topic
from penstock.log.values import Avro
from penstock.schema import Column, Schema, parse_schema, parse_type


@dataclass(frozen=True)
class Bad:
    reason: str


@dataclass(frozen=True)
class Case:
    """A message and what becomes of it: a row, of which what is not NULL is named, or `Bad`."""

    value: bytes | None
    want: Any
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    deleted: bool = False
    replaces: Any = None


NAN, INFINITE = float("nan"), float("inf")
NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)
LONG = "x" * 80
STRUCT = "STRUCT<a: INT NOT NULL, b: ARRAY<STRING>>"
TYPES = (
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL(5,2)",
    "DECIMAL(38,10)",
    "DECIMAL(18,0)",
    "STRING",
    "BINARY",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "ARRAY<INT>",
    "ARRAY<ARRAY<STRING>>",
    "MAP<STRING, INT>",
    "MAP<BIGINT, ARRAY<DOUBLE>>",
    STRUCT,
    "ARRAY<STRUCT<k: STRING, m: MAP<STRING, STRING>>>",
)
VALUES: dict[str, list[tuple[str, Any]]] = {
    "BOOLEAN": [
        ("true", True),
        (' "FALSE" ', False),
        ('"trUe"', True),
        ("1", Bad("1 is not a BOOLEAN")),
        ('"yes"', Bad('"yes" is not a BOOLEAN')),
        ("[true]", Bad("[true] is not a BOOLEAN")),
    ],
    "TINYINT": [
        ("-128", -128),
        ('"+127"', 127),
        ("128", Bad("128 is not a TINYINT")),
        ("true", Bad("true is not a TINYINT")),
    ],
    "SMALLINT": [("-32768", -32768), ("32768", Bad("32768 is not a SMALLINT"))],
    "INT": [
        ("0", 0),
        ("-0", 0),
        ('"007"', 7),
        ("2147483647", 2147483647),
        ("2147483648", Bad("2147483648 is not an INT")),
        ("1.0", Bad('"1.0" is not an INT')),
        ("1e2", Bad('"1E+2" is not an INT')),
        ("-0.0", Bad('"-0.0" is not an INT')),
        ('" 1"', Bad('" 1" is not an INT')),
        ('"1_0"', Bad('"1_0" is not an INT')),
        ('"٣"', Bad('"٣" is not an INT')),
        ('""', Bad('"" is not an INT')),
        ('"-"', Bad('"-" is not an INT')),
        ("NaN", Bad('"NaN" is not an INT')),
        ("-Infinity", Bad('"-Infinity" is not an INT')),
        ('{"b": [1, null], "a": "x", "b": 2}', Bad('{"b": 2, "a": "x"} is not an INT')),
        (f'"{LONG}"', Bad(f'"{"x" * 56}... is not an INT')),
        ('"\\u00e9\\n\\u0001\\ud800"', Bad('"é\\n\\u0001\\ud800" is not an INT')),
        ('"😀"', Bad('"😀" is not an INT')),
        ('"\\ud83d\\ude00"', Bad('"😀" is not an INT')),
    ],
    "BIGINT": [
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ('"-9223372036854775808"', -(2**63)),
        ("9223372036854775808", Bad("9223372036854775808 is not a BIGINT")),
        ("-9223372036854775809", Bad("-9223372036854775809 is not a BIGINT")),
        ('"00000000000000000000000000001"', 1),
    ],
    "FLOAT": [
        ("0.1", 0.10000000149011612),
        ("3.4028235e38", 3.4028234663852886e38),
        ("3.5e38", Bad('"3.5E+38" is not a FLOAT')),
        ('"infinity"', INFINITE),
    ],
    "DOUBLE": [
        ("0.1", 0.1),
        ("1e-7", 1e-7),
        ("123456789012345678", 123456789012345680.0),
        ("1.7976931348623157e308", 1.7976931348623157e308),
        ("1e309", Bad('"1E+309" is not a DOUBLE')),
        ("5e-324", 5e-324),
        ("1e-400", 0.0),
        ("9007199254740993", 9007199254740992.0),
        ("0.30000000000000004", 0.30000000000000004),
        ("2.2250738585072011e-308", 2.225073858507201e-308),
        ("-0", 0.0),
        ("-0.0", -0.0),
        ('"-0"', -0.0),
        ("NaN", NAN),
        ('"nan"', NAN),
        ("Infinity", INFINITE),
        ("-Infinity", -INFINITE),
        ('"-INFINITY"', -INFINITE),
        ('"+infinity"', Bad('"+infinity" is not a DOUBLE')),
        ('".5"', 0.5),
        ('"5."', 5.0),
        ('"+1.5E+2"', 150.0),
        ('"."', Bad('"." is not a DOUBLE')),
        ('"1.2.3"', Bad('"1.2.3" is not a DOUBLE')),
        ('"0x10"', Bad('"0x10" is not a DOUBLE')),
        ('"1d"', Bad('"1d" is not a DOUBLE')),
        ("true", Bad("true is not a DOUBLE")),
        ("[0, [1, 2], -1]", Bad("[0, [1, 2], -1] is not a DOUBLE")),
    ],
    "DECIMAL(5,2)": [
        ("12.5", Decimal("12.50")),
        ('"-999.99"', Decimal("-999.99")),
        ("1e2", Decimal("100.00")),
        ("1200e-2", Decimal("12.00")),
        ("0e50", Decimal("0.00")),
        ("12.345", Bad('"12.345" is not a DECIMAL(5,2)')),
        ("12.340", Decimal("12.34")),
        ("1000", Bad("1000 is not a DECIMAL(5,2)")),
        ("1e1000000", Bad('"1E+1000000" is not a DECIMAL(5,2)')),
        ("1e-1000000", Bad('"1E-1000000" is not a DECIMAL(5,2)')),
        ("170e6702400000", Bad('"1.70E+6702400002" is not a DECIMAL(5,2)')),
        ('"NaN"', Bad('"NaN" is not a DECIMAL(5,2)')),
        ('"1e99999999999999999999"', Bad('"1e99999999999999999999" is not a DECIMAL(5,2)')),
    ],
    "DECIMAL(38,10)": [
        ("1234567890123456789012345678.0123456789", Decimal("1234567890123456789012345678.0123456789")),
        ('"-0.0000000001"', Decimal("-0.0000000001")),
        ("0.00000000001", Bad('"1E-11" is not a DECIMAL(38,10)')),
        (f"1{'0' * 28}", Bad(f"1{'0' * 28} is not a DECIMAL(38,10)")),
    ],
    "DECIMAL(18,0)": [
        ("999999999999999999", Decimal(999999999999999999)),
        ("1000000000000000000", Bad("1000000000000000000 is not a DECIMAL(18,0)")),
    ],
    "STRING": [
        ('"a\\"b\\\\\\/\\b\\f\\n\\r\\t\\u0041é😀\\u0000"', 'a"b\\/\b\f\n\r\tAé😀\x00'),
        ('""', ""),
        (f'"{LONG}"', LONG),
        ("1", Bad("1 is not a STRING")),
        ('"\\ud800x"', Bad('"\\ud800x" is not a STRING')),
        ('"\\ude00\\ud83d"', Bad('"\\ude00\\ud83d" is not a STRING')),
        ("NaN", Bad('"NaN" is not a STRING')),
        ("-Infinity", Bad('"-Infinity" is not a STRING')),
    ],
    "BINARY": [
        ('"AP8="', b"\x00\xff"),
        ('""', b""),
        ('"AB=="', b"\x00"),
        ('"AA"', Bad('"AA" is not a BINARY')),
        ('"A A="', Bad('"A A=" is not a BINARY')),
        ('"=AAA"', Bad('"=AAA" is not a BINARY')),
        ('"AA==AA=="', Bad('"AA==AA==" is not a BINARY')),
        ('"A==="', Bad('"A===" is not a BINARY')),
        ("5", Bad("5 is not a BINARY")),
        ("Infinity", Bad('"Infinity" is not a BINARY')),
    ],
    "DATE": [
        ('"2024-02-29"', date(2024, 2, 29)),
        ('"20240131"', date(2024, 1, 31)),
        ('"0001-01-01"', date.min),
        ('"9999-12-31"', date.max),
        ('"2023-02-29"', Bad('"2023-02-29" is not a DATE')),
        ('"2024-1-31"', Bad('"2024-1-31" is not a DATE')),
        ('"2024-01-31T00:00"', Bad('"2024-01-31T00:00" is not a DATE')),
        ('"2024-W05-3"', Bad('"2024-W05-3" is not a DATE')),
        ('"0000-01-01"', Bad('"0000-01-01" is not a DATE')),
        ('"2024-01-31é"', Bad('"2024-01-31é" is not a DATE')),
        ("20240131", Bad("20240131 is not a DATE")),
    ],
    "TIMESTAMP": [
        ('"2024-01-31T12:00:00Z"', NOON),
        ('"2024-01-31 12:00:00.123456"', NOON + timedelta(microseconds=123456)),
        ('"2024-01-31t13:00+01"', NOON),
        ('"20240131T133000,5+0130"', NOON + timedelta(microseconds=500_000)),
        ('"2024-01-31T06:29:50-05:30:10"', NOON),
        ('"2024-01-31"', NOON - timedelta(hours=12)),
        ('"2024-01-31T12"', NOON),
        ('"1969-12-31T23:59:59.999999Z"', datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)),
        ('"9999-12-31T23:59:59.999999Z"', datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)),
        ('"0001-01-01T00:30+01:00"', Bad('"0001-01-01T00:30+01:00" is not a TIMESTAMP')),
        ('"9999-12-31T23:30-01:00"', Bad('"9999-12-31T23:30-01:00" is not a TIMESTAMP')),
        ('"2024-01-31T12:00:00.1234567Z"', Bad('"2024-01-31T12:00:00.1234567Z" is not a TIMESTAMP')),
        ('"2024-01-31T24:00:00Z"', Bad('"2024-01-31T24:00:00Z" is not a TIMESTAMP')),
        ('"2024-01-31T12:60:00Z"', Bad('"2024-01-31T12:60:00Z" is not a TIMESTAMP')),
        ('"2024-01-31T1200:00Z"', Bad('"2024-01-31T1200:00Z" is not a TIMESTAMP')),
        ('"2024-01-31T12:00:00z"', Bad('"2024-01-31T12:00:00z" is not a TIMESTAMP')),
        ('"2024-01-31T12:00+01:00:00.5"', Bad('"2024-01-31T12:00+01:00:00.5" is not a TIMESTAMP')),
        ('"2024-01-31T"', Bad('"2024-01-31T" is not a TIMESTAMP')),
        ('"2024-01-31Z"', Bad('"2024-01-31Z" is not a TIMESTAMP')),
        ("1706702400000", Bad("1706702400000 is not a TIMESTAMP")),
    ],
    "TIMESTAMP_NTZ": [
        ('"2024-01-31T12:00:00"', NOON.replace(tzinfo=None)),
        ('"2024-01-31T12:00:00Z"', Bad('"2024-01-31T12:00:00Z" is not a TIMESTAMP_NTZ')),
    ],
    "ARRAY<INT>": [
        ("[]", []),
        ('[1, null, "3"]', [1, None, 3]),
        ("{}", Bad("{} is not an ARRAY<INT>")),
    ],
    "ARRAY<ARRAY<STRING>>": [
        ('[["a"], null, [], ["b", null]]', [["a"], None, [], ["b", None]]),
        ('["a"]', Bad('"a" is not an ARRAY<STRING>')),
    ],
    "MAP<STRING, INT>": [
        ('{"a": 1, "b": null, "a": 2}', [("a", 2), ("b", None)]),
        ('{"\\u0061": 1, "a": 3}', [("a", 3)]),
        ('[["a", 1], ["a", 2]]', [("a", 1), ("a", 2)]),
        ("[]", []),
        ("{}", []),
        ('""', Bad('"" is not a MAP<STRING, INT>')),
        ('["ab"]', Bad('["ab"] is not a MAP<STRING, INT>')),
        ('[["a", 1, 2]]', Bad('[["a", 1, 2]] is not a MAP<STRING, INT>')),
        ("[[null, 1]]", Bad("null is not a STRING")),
        ("[[1, 1]]", Bad("1 is not a STRING")),
    ],
    "MAP<BIGINT, ARRAY<DOUBLE>>": [
        ('{"1": [1, "NaN"], "2": null}', [(1, [1.0, NAN]), (2, None)]),
        ("[[1, [0.5]]]", [(1, [0.5])]),
    ],
    STRUCT: [
        ('{"b": ["x"], "a": 1}', {"a": 1, "b": ["x"]}),
        ('{"a": "x", "a": 2}', {"a": 2, "b": None}),
        ('{"a": 1, "c": 2}', Bad(f'{{"a": 1, "c": 2}} is not a {STRUCT}')),
        ("[]", Bad(f"[] is not a {STRUCT}")),
    ],
    "ARRAY<STRUCT<k: STRING, m: MAP<STRING, STRING>>>": [
        (
            '[{"k": "a", "m": {"x": "1"}}, null, {}]',
            [{"k": "a", "m": [("x", "1")]}, None, {"k": None, "m": None}],
        ),
    ],
}
NESTED: dict[str, list[tuple[str, str]]] = {
    "ARRAY<INT>": [("[1, true]", "[1]: true is not an INT")],
    "MAP<STRING, INT>": [('{"a": "x"}', '["a"]: "x" is not an INT')],
    STRUCT: [
        ('{"b": []}', ".a: null is not an INT"),
        ('{"a": null}', ".a: null is not an INT"),
        ('{"a": 1, "b": ["x", 2]}', ".b[1]: 2 is not a STRING"),
        ('{"b": [2], "a": "x"}', '.a: "x" is not an INT'),
    ],
    "ARRAY<STRUCT<k: STRING, m: MAP<STRING, STRING>>>": [('[{"m": {"x": 1}}]', '[0].m["x"]: 1 is not a STRING')],
}
"""What does not fit inside of a value: where it lies, and why."""

WIDE_SCHEMA = Schema(tuple(Column(f"c{at}", parse_type(type_)) for at, type_ in enumerate(TYPES)))
KEYED = Topic("keyed", (parse_schema(f"id BIGINT NOT NULL, city STRING, n INT NOT NULL, s {STRUCT}"),), key=("id",))
PAIRED = Topic("paired", (parse_schema("a INT, b STRING, c DOUBLE"),), key=("a", "b"))
NESTED_KEY = Topic("nested_key", (parse_schema("k STRUCT<x: INT>, v INT"),), key=("k",))
PLAIN = Topic("plain", (parse_schema("id BIGINT NOT NULL, name STRING"),))
MENDED = Topic(
    "mended",
    (parse_schema("at TIMESTAMP NOT NULL, occurred TIMESTAMP, sent TIMESTAMP, received TIMESTAMP"),),
    event_time="at",
    corrected=Correction("occurred", "sent", "received"),
)
AVRO = Topic("avro", (WIDE_SCHEMA,), values=Avro())
FOREIGN_SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {
                "name": "note",
                "type": ["null", {"type": "map", "values": {"type": "array", "items": "Color_"}}, "string"],
            },
            {"name": "id", "type": "long"},
            {"name": "n", "type": "int"},
            {
                "name": "price",
                "type": {"type": "fixed", "name": "Price", "size": 4, "logicalType": "decimal", "scale": 1},
            },
            {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED", "GREEN"]}},
            {"name": "at", "type": [{"type": "long", "logicalType": "timestamp-millis"}, "null"]},
            {
                "name": "inner",
                "type": {
                    "type": "record",
                    "name": "Inner",
                    "fields": [{"name": "x", "type": ["null", "int"]}, {"name": "c", "type": "Color"}],
                },
            },
            {"name": "ratio", "type": ["float", "int"]},
        ],
    }
).replace('"Color_"', '{"type": "enum", "name": "Kind", "symbols": ["A"]}')
COLUMNS = (
    "id BIGINT NOT NULL, n TINYINT, price DECIMAL(5,2), color STRING, at TIMESTAMP, "
    "inner STRUCT<x: SMALLINT NOT NULL, y: INT>, ratio DOUBLE, more STRING"
)
FOREIGN = Topic("foreign", (parse_schema(COLUMNS),), key=("id",), values=Avro(schema=FOREIGN_SCHEMA))
SMALL = json.dumps({"type": "record", "name": "v1", "fields": [{"name": "id", "type": "int"}]})
LARGE = json.dumps(
    {
        "type": "record",
        "name": "v2",
        "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}],
    }
)
FRAMED = Topic(
    "framed", (parse_schema("id BIGINT NOT NULL, name STRING"),), values=Avro(ids=((3, SMALL), (2**31 + 7, LARGE)))
)
BYTES = Topic("bytes", (RAW,), raw=True, event_time="time")
WIDE = Topic("wide", (WIDE_SCHEMA,))
GONE = "it has no value, and no key to delete by"

MESSAGES: dict[Topic, list[Case]] = {
    KEYED: [
        Case(b'{"id": 1, "n": 2, "other": [{"deep": 1}]}', {"id": 1, "n": 2}, key=b"not looked at"),
        Case(b'{"id": 1}', Bad('field "n" is NULL, and the column is NOT NULL')),
        Case(b'{"n": 1, "id": null}', Bad('field "id" is NULL, and the column is NOT NULL')),
        Case(b"", Bad("its value is not JSON")),
        Case(b"{", Bad("its value is not JSON")),
        Case(b'{"id": 1,}', Bad("its value is not JSON")),
        Case(b'{"id": 01, "n": 1}', Bad("its value is not JSON")),
        Case(b'{"id": 1 "n": 1}', Bad("its value is not JSON")),
        Case(b'{"id": "x", "n": }', Bad("its value is not JSON")),
        Case(b'{"id": "x", "n": 1} x', Bad("its value is not JSON")),
        Case(b'{"id": 1, "n": 1e}', Bad("its value is not JSON")),
        Case(b'{"id": 1., "n": 1}', Bad("its value is not JSON")),
        Case(b'{"id": 1, "n": 1, "o": 1e99999999999999999999}', Bad("its value is not JSON")),
        Case(b'{"id": 1, "n": 1, "o": %s}' % (b"1" * 5000), Bad("its value is not JSON")),
        Case(b'{"id": 1, "n": 1, "o": %s1%s}' % (b"[" * 20000, b"]" * 20000), Bad("its value is not JSON")),
        Case(b'{"id": 1, "n": 1, "o": "\x01"}', Bad("its value is not JSON")),
        Case(b'{"id": 1, "n": 1, "o": "\\x"}', Bad("its value is not JSON")),
        Case(b'{"id": 1, "n": 1, "o": "\\u00g0"}', Bad("its value is not JSON")),
        Case(b'\xef\xbb\xbf{"id": 1, "n": 1}', Bad("its value is not JSON")),
        Case('{"id": 1, "n": 1}'.encode("utf-16"), Bad("its value is not UTF-8")),
        Case(b'{"id": 1, "n": 1, "city": "\xff"}', Bad("its value is not UTF-8")),
        Case(b'{"id": 1, "n": 1, "o": "\xed\xa0\x80"}', Bad("its value is not UTF-8")),
        Case(b'{"id": 1, "n": 1, "o": "\xc0\x80"}', Bad("its value is not UTF-8")),
        Case(b"[1]", Bad("its value is not a JSON object")),
        Case(b"null", Bad("its value is not a JSON object")),
        Case(b' \t\r\n{ "id" : 1 , "n" : 1 } ', {"id": 1, "n": 1}),
        Case(b'{"n": "x", "id": "y"}', Bad('in its value, field "id": "y" is not a BIGINT')),
        Case(b'{"n": "x", "id": 1}', Bad('in its value, field "n": "x" is not an INT')),
        Case(b'{"n": "x", "id": 1, "n": 3}', {"id": 1, "n": 3}),
        Case(b'{"n": 3, "id": 1, "n": null}', Bad('field "n" is NULL, and the column is NOT NULL')),
        Case(b'{"n": 3, "id": 1, "city": null, "city": "Rome"}', {"id": 1, "n": 3, "city": "Rome"}),
        Case(
            b'{"id": 1, "n": 1, "s": {"b": [null]}, "s": {"a": 2, "b": ["x"]}}',
            {"id": 1, "n": 1, "s": {"a": 2, "b": ["x"]}},
        ),
        Case(b'{"\\u0069d": 1, "n": 1}', {"id": 1, "n": 1}),
        Case(None, {"id": 7}, key=b"7", deleted=True),
        Case(None, {"id": 7}, key=b'"7"', deleted=True),
        Case(None, {"id": 7}, key=b'{"id": 7, "x": 1}', deleted=True),
        Case(
            None,
            {"id": 7, "city": "Oslo"},
            key=b'{"id":7}',
            headers=(("penstock.row", b'{"city": "Oslo"}'),),
            deleted=True,
        ),
        Case(
            None,
            Bad('in its header with the row, field "n": "x" is not an INT'),
            key=b"x",
            headers=(("penstock.row", b'{"n": "x"}'),),
        ),
        Case(None, Bad("its header with the row is not a JSON object"), key=b"7", headers=(("penstock.row", b"7"),)),
        Case(None, Bad("its header with the row is not JSON"), key=b"7", headers=(("penstock.row", None),)),
        Case(None, Bad(GONE)),
        Case(None, Bad("its key is not JSON"), key=b"seven"),
        Case(None, Bad("its key is not UTF-8"), key=b"\xff"),
        Case(None, Bad('in its key, field "id": {"x": 1} is not a BIGINT'), key=b'{"x": 1}'),
        Case(None, Bad('field "id" is NULL, and the column is NOT NULL'), key=b"null"),
        Case(None, Bad('field "id" is NULL, and the column is NOT NULL'), key=b'{"id": null}'),
        Case(b'{"id": 7}', {"id": 7}, headers=(("penstock.deleted", b""),), deleted=True),
        Case(
            b'{"id": 7, "n": 1}',
            {"id": 7, "n": 1},
            headers=(("penstock.replaces", b'{"id": 6, "s": {"a": 1}}'),),
            replaces={"id": 6, "city": None, "n": None, "s": {"a": 1, "b": None}},
        ),
        Case(
            b"{",
            Bad('in its header with the replaced row, field "s.a": "x" is not an INT'),
            headers=(("penstock.replaces", b'{"id": 6, "s": {"a": "x"}}'),),
        ),
        Case(b"{", Bad("its header with the replaced row is not UTF-8"), headers=(("penstock.replaces", b"\xff"),)),
        Case(
            b'{"id": 1, "n": 1}',
            {"id": 1, "n": 1},
            headers=(("a", b"1"), ("b", None), ("a", b"2"), ("penstock.x", b"")),
        ),
    ],
    PAIRED: [
        Case(None, {"a": 1, "b": "x"}, key=b'{"b": "x", "a": 1}', deleted=True),
        Case(None, {"a": 1}, key=b'{"a": 1}', deleted=True),
        Case(None, {}, key=b"{}", deleted=True),
        Case(None, Bad("its key is not a JSON object"), key=b"[1, 2]"),
        Case(None, Bad('in its key, field "b": 1 is not a STRING'), key=b'{"b": 1, "a": 2}'),
        Case(
            None,
            {"a": 1, "b": "x", "c": 0.5},
            key=b'{"a": 1, "b": "x"}',
            headers=(("penstock.row", b'{"a": 9, "c": 0.5}'),),
            deleted=True,
        ),
    ],
    NESTED_KEY: [
        Case(None, {"k": {"x": 1}}, key=b'{"x": 1}', deleted=True),
        Case(None, {"k": {"x": 1}}, key=b'{"k": {"x": 1}}', deleted=True),
        Case(None, Bad('in its key, field "k": {"y": 1} is not a STRUCT<x: INT>'), key=b'{"y": 1}'),
    ],
    PLAIN: [
        Case(b'{"id": 1, "name": "a"}', {"id": 1, "name": "a"}),
        Case(b'{"id": 1}', {"id": 1}, headers=(("penstock.deleted", b""),), deleted=True),
        Case(b'{"name": "a"}', {"name": "a"}, headers=(("penstock.deleted", b""),), deleted=True),
        Case(None, Bad(GONE), key=b"1"),
    ],
    MENDED: [
        Case(
            b'{"occurred": "2024-01-31T11:00", "sent": "2024-01-31T11:30", "received": "2024-01-31T12:30"}',
            {
                "at": NOON,
                "occurred": NOON - timedelta(hours=1),
                "sent": NOON - timedelta(minutes=30),
                "received": NOON + timedelta(minutes=30),
            },
        ),
        Case(b'{"received": "2024-01-31T12:00", "at": "2020-01-01"}', {"at": NOON, "received": NOON}),
        Case(b'{"occurred": "2024-01-31T12:00"}', {"at": NOON, "occurred": NOON}),
    ],
    BYTES: [
        Case(b"\xff\x00", {"key": b"k", "value": b"\xff\x00"}, key=b"k"),
        Case(b"", {"value": b""}),
        Case(b"v", {"value": b"v", "time": NOON}, headers=(("penstock.time", b"2024-01-31T12:00Z"), ("h", b""))),
        Case(None, {"key": b"k"}, key=b"k", deleted=True),
        Case(b"v", {"value": b"v"}, headers=(("penstock.deleted", None),), deleted=True),
        Case(b"v", Bad("its header with the time is not a TIMESTAMP"), headers=(("penstock.time", b"noon"),)),
        Case(b"v", Bad("its header with the time is not UTF-8"), headers=(("penstock.time", b"\xff"),)),
    ],
    WIDE: [],
}


def _wide() -> Iterator[Case]:
    for at, type_ in enumerate(TYPES):
        for text, want in VALUES[type_]:
            path = _path(type_, text)
            bad = isinstance(want, Bad)
            reason = f'in its value, field "c{at}{path}": {want.reason}' if bad else ""
            yield Case(f'{{"c{at}": {text}}}'.encode(), Bad(reason) if bad else {f"c{at}": want})
        for text, trouble in NESTED.get(type_, ()):
            path, _, reason = trouble.partition(": ")
            yield Case(f'{{"c{at}": {text}}}'.encode(), Bad(f'in its value, field "c{at}{path}": {reason}'))


def _path(type_: str, text: str) -> str:
    """Elements that do not fit at the first place."""
    return "[0]" if type_ == "ARRAY<ARRAY<STRING>>" and text == '["a"]' else ""


MESSAGES[WIDE] = list(_wide())


BROKEN = Bad("its value is not Avro of its schema")


def _encoded() -> Iterator[Case]:
    """The wide topic's rows in Avro, whole and damaged."""
    rows = [case.want for case in MESSAGES[WIDE] if not isinstance(case.want, Bad)]
    values = Values(AVRO)
    for row in rows:
        # A map may have a key twice, and NaN is like NaN.
        yield Case(values.bytes_of(row), row)
    whole = values.bytes_of(rows[0])
    yield Case(whole[:2], {"c0": True})
    yield Case(b"", {})
    yield Case(b"\x02", BROKEN)
    yield Case(b"\x02\x02", BROKEN)
    yield Case(b"\x04", BROKEN)
    yield Case(b"\x01", BROKEN)
    yield Case(whole + b"\x00", BROKEN)
    yield Case(b"\x00\x02\x80\x02", Bad('in its value, field "c1": it is not a TINYINT'))
    yield Case(b"\x00\x02\x80\x02\x04", BROKEN)
    yield Case(b"\x00\x00\x00\x02" + b"\xff" * 10 + b"\x01", BROKEN)
    yield Case(b"\x00" * 10 + b"\x02\x02\xff", Bad('in its value, field "c10": it is not a STRING'))
    yield Case(b"\x00" * 12 + b"\x02\xff\xff\xff\xff\x0f", Bad('in its value, field "c12": it is not a DATE'))
    yield Case(b"\x00" * 15 + b"\x02\x02\x02\x02\x00", {"c15": [1]})
    yield Case(b"\x00" * 15 + b"\x02\x01\x04\x02\x02\x00", {"c15": [1]})
    yield Case(b"\x00" * 15 + b"\x02\x7e", BROKEN)


def _foreign() -> Iterator[Case]:
    front, inner = b"\x00", b"\x02\x06\x00"
    price = (125).to_bytes(4, signed=True)
    row = {
        "id": 1,
        "n": 2,
        "price": Decimal("12.50"),
        "color": "GREEN",
        "at": NOON,
        "inner": {"x": 3, "y": None},
        "ratio": 5.0,
    }
    noon = b"\x00" + _zigzag(int(NOON.timestamp()) * 1000)
    yield Case(front + b"\x02\x04" + price + b"\x02" + noon + inner + b"\x02\x0a", row)
    note = b"\x02\x02\x02a\x02\x00\x00\x00"
    yield Case(
        note + b"\x02\x04" + price + b"\x02\x02" + inner + b"\x00\x00\x00\x00\x3f", row | {"at": None, "ratio": 0.5}
    )
    yield Case(front + b"\x02\x04" + price + b"\x04" + noon + inner + b"\x02\x0a", BROKEN)
    large = (10**5).to_bytes(4, signed=True)
    yield Case(front + b"\x02\x04" + large, Bad('in its value, field "price": it is not a DECIMAL(5,2)'))
    yield Case(front + b"\x02\x80\x02" + large, Bad('in its value, field "n": it is not a TINYINT'))
    bad = front + b"\x02\x04" + price + b"\x02" + noon
    yield Case(bad + b"\x02\x80\x80\x08\x00", Bad('in its value, field "inner.x": it is not a SMALLINT'))
    yield Case(bad + b"\x00\x00", Bad('in its value, field "inner.x": it is not a SMALLINT'))
    yield Case(b"", Bad('field "id" is NULL, and the column is NOT NULL'))
    yield Case(None, {"id": 9}, key=b"9", deleted=True)


def _framed() -> Iterator[Case]:
    yield Case(b"\x00\x00\x00\x00\x03\x02", {"id": 1})
    yield Case(b"\x00\x80\x00\x00\x07\x02\x02\x02a", {"id": 1, "name": "a"})
    yield Case(b"\x00\x80\x00\x00\x08\x02", Bad("its value has schema 2147483656, which the topic does not declare"))
    yield Case(b"\x01\x00\x00\x00\x03\x02", Bad("its value does not begin with the id of a schema"))
    yield Case(b"\x00\x00", Bad("its value does not begin with the id of a schema"))
    yield Case(b"\x00\x00\x00\x00\x03", Bad('field "id" is NULL, and the column is NOT NULL'))


def _zigzag(value: int) -> bytes:
    rest, found = value << 1, bytearray()
    while rest > 127:
        found.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*found, rest])


MESSAGES |= {AVRO: list(_encoded()), FOREIGN: list(_foreign()), FRAMED: list(_framed())}


def damaged(count: int, seed: int) -> list[bytes]:
    """Values of the wide topic, most of them with a few bytes changed."""
    chance = random.Random(seed)
    whole = [case.value for case in MESSAGES[WIDE] if case.value is not None and len(case.value) < 200]
    return [_damaged(chance.choice(whole), chance) for _ in range(count)]


def _damaged(value: bytes, chance: random.Random) -> bytes:
    found = bytearray(value)
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        at = chance.randrange(len(found))
        with_ = bytes([chance.choice(b'0123456789+-.eETZ:,"\\{}[]uNnatlf /= \t\xff\xc3\xa9')])
        match chance.randrange(4):
            case 0:
                found[at : at + 1] = with_
            case 1:
                found[at:at] = with_
            case 2:
                del found[at]
            case _:
                found[at:at] = found[at : at + chance.randrange(1, 8)]
        if not found:
            return b"x"
    return bytes(found)
