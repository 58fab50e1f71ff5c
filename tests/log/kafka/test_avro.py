"""Avro's encoding of values: what is written, byte by byte, and schemas that are refused."""

import json

import pytest

from penstock.errors import SchemaError
from penstock.log.kafka.avro import Values, schema_of
from penstock.log.topic import Topic, topic_json, topic_of
from penstock.log.values import Avro
from penstock.schema import parse_schema

COLUMNS = parse_schema("id BIGINT NOT NULL, price DECIMAL(5,2), tags MAP<INT, STRING>")


def topic(columns: str, values: Avro) -> Topic:
    return Topic("t", (parse_schema(columns),), values=values)


def record(*fields: tuple[str, object]) -> str:
    return json.dumps({"type": "record", "name": "r", "fields": [{"name": n, "type": t} for n, t in fields]})


def test_columns_give_a_schema_with_all_fields_nullable() -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
    fields = [{"name": "key", "type": "int"}, {"name": "value", "type": ["null", "string"]}]
    entries = {"type": "array", "items": {"type": "record", "name": "tags_entry", "fields": fields}}
    assert [field["type"] for field in schema_of(COLUMNS)["fields"]] == [
        ["null", "long"],
        ["null", decimal],
        ["null", entries],
    ]


def test_a_row_is_written_as_avro_says() -> None:
    values = Values(topic("id INT, name STRING, b BOOLEAN", Avro()))
    assert values.bytes_of({"id": -1, "name": "é", "b": None}) == b"\x02\x01\x02\x04\xc3\xa9\x00"


def test_a_row_begins_with_the_newest_id() -> None:
    schema = record(("id", "int"), ("name", ["string", "null"]))
    values = Values(topic("id INT, name STRING", Avro(ids=((3, record(("id", "int"))), (4, schema)))))
    assert values.bytes_of({"id": 1}) == b"\x00\x00\x00\x00\x04\x02\x02"


@pytest.mark.parametrize(
    ("columns", "field", "said"),
    [
        ("a INT", "string", 'the Avro schema has string for field "a"'),
        ("a TIMESTAMP", "long", 'the Avro schema has long for field "a"'),
        ("a ARRAY<INT>", {"type": "array", "items": "boolean"}, 'the Avro schema has boolean for field "a"'),
        ("a MAP<INT, INT>", {"type": "array", "items": "int"}, 'the Avro schema has an array for field "a"'),
        ("a STRUCT<b: INT>", {"type": "map", "values": "int"}, 'the Avro schema has map for field "a"'),
    ],
)
def test_schemas_that_do_not_go_together_with_the_columns_are_refused(columns: str, field: object, said: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Values(topic(columns, Avro(record(("a", field)))))
    assert caught.value.primary == said


@pytest.mark.parametrize("text", ["{", '"long"', "[]", '{"type": "enum", "name": "e", "symbols": []}'])
def test_what_is_no_record_is_no_schema_of_values(text: str) -> None:
    with pytest.raises(SchemaError):
        Avro(text)


def test_what_a_topic_says_of_its_values_comes_back() -> None:
    for values in (Avro(), Avro(record(("id", "int"))), Avro(ids=((1, record(("id", "int"))),))):
        declared = topic("id INT", values)
        assert topic_of("t", json.loads(json.dumps(topic_json(declared)))) == declared


def test_a_null_where_the_schema_has_none_is_refused() -> None:
    values = Values(topic("id INT", Avro(record(("id", "int")))))
    with pytest.raises(SchemaError, match="NULL where the Avro schema has no null"):
        values.bytes_of({"id": None})


def spaced(*fields: tuple[str, object]) -> str:
    return json.dumps(json.loads(record(*fields)) | {"namespace": "shop"})


def test_types_are_found_by_their_full_names() -> None:
    place = {"type": "record", "name": "place", "fields": [{"name": "zip", "type": "int"}]}
    other = {"type": "enum", "name": "place", "namespace": "elsewhere", "symbols": ["a", "b"]}
    schema = spaced(("home", place), ("kind", other), ("work", "shop.place"), ("away", "place"), ("id", "int"))
    columns = "id INT, away STRUCT<zip: INT>, kind STRING"
    read = Values(topic(columns, Avro(schema))).row_of(b"\x02\x02\x04\x06\x08")
    assert read == {"id": 4, "away": {"zip": 3}, "kind": "b"}


@pytest.mark.parametrize("column", ["id INT", "id INT, next STRUCT<id: INT>"])
def test_a_type_that_holds_itself_is_refused(column: str) -> None:
    with pytest.raises(SchemaError, match="a type that holds itself"):
        Values(topic(column, Avro(record(("id", "int"), ("next", ["null", "r"])))))


def test_a_type_that_is_nowhere_said_is_refused() -> None:
    with pytest.raises(SchemaError, match="and does not say what it is"):
        Values(topic("id INT", Avro(record(("home", "shop.place"), ("id", "int")))))
