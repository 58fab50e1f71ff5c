"""Schemas are read back as they are printed, and a text that is none is refused with the spot."""

from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import SchemaError
from penstock.schema import (
    RESERVED,
    SCALARS,
    Array,
    Column,
    Decimal,
    Map,
    Scalar,
    Schema,
    Struct,
    Type,
    arrow_schema,
    parse_schema,
    parse_type,
    type_text,
)
from tests.effort import examples
from tests.texts import refused

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
unique = {"unique_by": lambda column: column.name.lower()}


def columns(types: st.SearchStrategy[Type]) -> st.SearchStrategy[tuple[Column, ...]]:
    column = st.builds(Column, names.filter(lambda name: name.lower() not in RESERVED), types, st.booleans())
    return st.lists(column, min_size=1, max_size=4, **unique).map(tuple)  # type: ignore[arg-type]


def nested(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    return st.builds(Array, inner) | st.builds(Map, inner, inner) | st.builds(Struct, columns(inner))


decimals = st.integers(1, 38).flatmap(lambda p: st.builds(Decimal, st.just(p), st.integers(0, p)))
types: st.SearchStrategy[Type] = st.recursive(st.sampled_from([*map(Scalar, SCALARS)]) | decimals, nested, max_leaves=6)
schemas = columns(types).map(Schema)


@examples(60)
@given(types)
def test_a_type_is_read_back_as_it_is_printed(type_: Type) -> None:
    assert parse_type(type_text(type_)) == type_


@examples(40)
@given(schemas)
def test_a_schema_is_read_back_as_it_is_printed(schema: Schema) -> None:
    assert parse_schema(str(schema)) == schema


@examples(40)
@given(schemas)
def test_every_schema_has_an_arrow_form_that_can_hold_nulls(schema: Schema) -> None:
    arrow = arrow_schema(schema)
    assert tuple(arrow.names) == schema.names
    assert pa.table([pa.nulls(1, field.type) for field in arrow], schema=arrow).num_rows == 1


@given(st.text(st.sampled_from("aINT <>(),:`²٣5\n") | st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_text_is_a_schema_or_refused_as_one(text: str) -> None:
    with suppress(SchemaError):
        schema = parse_schema(text)
        assert parse_schema(str(schema)) == schema


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("id bigint not null", "id BIGINT NOT NULL"),
        (" a INTEGER,b LONG , c Short", "a INT, b BIGINT, c SMALLINT"),
        ("a DECIMAL, b DEC(5), c NUMERIC(5, 2)", "a DECIMAL(10,0), b DECIMAL(5,0), c DECIMAL(5,2)"),
        ("s STRUCT<a INT, b: STRING NOT NULL>", "s STRUCT<a: INT, b: STRING NOT NULL>"),
        ("m map<string,array<int>>", "m MAP<STRING, ARRAY<INT>>"),
        ("`a b` INT, `c``d` INT, größe INT", "`a b` INT, `c``d` INT, `größe` INT"),
        ("t TIMESTAMP_LTZ, not INT", "t TIMESTAMP, not INT"),
    ],
)
def test_a_schema_is_written_as_spark_writes_it(text: str, printed: str) -> None:
    assert str(parse_schema(text)) == printed


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("empty", ""),
        ("blank", "  "),
        ("no-type", "id"),
        ("unknown-type", "id BIGINT, name STRNG"),
        ("very-unknown-type", "id VARCHAR"),
        ("comma-at-the-end", "id INT,"),
        ("two-columns-without-comma", "id INT name STRING"),
        ("not-without-null", "id INT NOT"),
        ("open-bracket", "tags ARRAY<INT"),
        ("no-bracket", "tags ARRAY"),
        ("map-of-one", "m MAP<STRING>"),
        ("empty-struct", "s STRUCT<>"),
        ("struct-field-twice", "s STRUCT<a: INT, A: INT>"),
        ("decimal-too-wide", "d DECIMAL(39,0)"),
        ("decimal-scale", "d DECIMAL(5,6)"),
        ("decimal-of-text", "d DECIMAL(x)"),
        ("decimal-of-power", "d DECIMAL(²)"),
        ("bad-name", "a-b INT"),
        ("open-backtick", "`id INT"),
        ("lone-backtick", "` INT"),
        ("empty-name", "`` INT"),
        ("twice", "id INT, ID STRING"),
        ("hidden", "id INT, _Offset BIGINT"),
    ],
)
def test_a_text_that_is_no_schema_is_refused_with_the_spot(name: str, text: str) -> None:
    with refused(f"schema/{name}"):
        parse_schema(text)


def test_a_schema_without_columns_is_refused() -> None:
    with refused("schema/no-columns"):
        Schema(())


def test_a_column_that_does_not_exist_is_refused_with_the_nearest_name() -> None:
    with refused("schema/unknown-column"):
        parse_schema("id INT, customer STRING").column("costumer")
