"""Values survive SQLite, whatever their type, and compare there as Spark compares them."""

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Context
from decimal import Decimal as Number
from typing import Any

import apsw
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.schema import Array, Column, Decimal, Map, Scalar, Struct, Type, arrow_type, parse_type
from penstock.views.database import compared_decimals, compared_times
from penstock.views.tables import declared
from penstock.views.values import decoded, encoded
from tests.effort import examples

EXACT = Context(prec=80)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-128, 127),
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(width=32),
    "DOUBLE": st.floats(),
    "STRING": st.text(),
    "BINARY": st.binary(),
    "DATE": st.integers(-(2**31), 2**31 - 1),
    "TIMESTAMP": st.integers(-(2**62), 2**62),
    "TIMESTAMP_NTZ": st.integers(-(2**62), 2**62),
}
TYPES: st.SearchStrategy[Type] = st.recursive(
    st.one_of(
        st.sampled_from([Scalar(name) for name in SCALARS]),
        st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: Decimal(p, s))),
    ),
    lambda inner: st.one_of(
        inner.map(Array),
        st.tuples(st.sampled_from([Scalar("STRING"), Scalar("INT"), Scalar("DATE")]), inner).map(lambda p: Map(*p)),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda each: Struct(tuple(Column(f"f{at}", type_) for at, type_ in enumerate(each)))
        ),
    ),
    max_leaves=4,
)


def values_of(type_: Type) -> st.SearchStrategy[Any]:
    """Python values of which Arrow makes the type; times are numbers, since Python's do not reach as far."""
    match type_:
        case Scalar(name):
            found = SCALARS[name]
        case Decimal(precision, scale):
            largest = 10**precision - 1
            found = st.integers(-largest, largest).map(lambda n: Number(n).scaleb(-scale, EXACT))
        case Array(element):
            found = st.lists(values_of(element), max_size=3)
        case Map(key, value):
            keys = values_of(key).filter(lambda each: each is not None)
            found = st.dictionaries(keys, values_of(value), max_size=3).map(lambda each: list(each.items()))
        case Struct(fields):
            found = st.tuples(*(values_of(field.type) for field in fields))
    return st.one_of(st.none(), found)


def array_of(type_: Type, values: Sequence[Any]) -> pa.Array:
    """Built column by column, so that times can be numbers at any depth."""
    nulls = pa.array([value is None for value in values], pa.bool_())
    if isinstance(type_, Struct):
        columns = [[None if v is None else v[at] for v in values] for at in range(len(type_.fields))]
        children = [array_of(f.type, column) for f, column in zip(type_.fields, columns, strict=True)]
        return pa.StructArray.from_arrays(children, fields=list(arrow_type(type_)), mask=nulls)
    if isinstance(type_, Array | Map):
        lengths = [0]
        for value in values:
            lengths.append(lengths[-1] + len(value or ()))
        items = [item for value in values for item in value or ()]
        if isinstance(type_, Array):
            inner = array_of(type_.element, items)
            return pa.ListArray.from_arrays(pa.array(lengths, pa.int32()), inner, type=arrow_type(type_), mask=nulls)
        inside = array_of(type_.key, [k for k, _ in items]), array_of(type_.value, [v for _, v in items])
        return pa.MapArray.from_arrays(pa.array(lengths, pa.int32()), *inside, arrow_type(type_), mask=nulls)
    if isinstance(type_, Scalar) and type_.name in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        wanted = arrow_type(type_)
        return pa.array(values, pa.int32() if type_.name == "DATE" else pa.int64()).cast(wanted)
    return pa.array(values, arrow_type(type_))


def through_sqlite(type_: Type, array: pa.Array) -> pa.Array:
    connection = apsw.Connection(":memory:")
    connection.create_collation("DECIMAL", compared_decimals)
    connection.create_collation("TIMESTAMP", compared_times)
    connection.execute(f"CREATE TABLE t (x {declared(type_)})")
    connection.executemany("INSERT INTO t VALUES (?)", ((value,) for value in encoded(type_, array)))
    return decoded(type_, [value for (value,) in connection.execute("SELECT x FROM t ORDER BY rowid")])


def same(one: pa.Array, other: pa.Array) -> bool:
    """Equal, where a NaN is equal to itself."""
    return one.type == other.type and repr(_shown(one)) == repr(_shown(other))


def _shown(array: pa.Array) -> Any:
    if pa.types.is_temporal(array.type):
        return array.cast(pa.int32() if pa.types.is_date(array.type) else pa.int64()).to_pylist()
    if pa.types.is_struct(array.type):
        return array.is_valid().to_pylist(), [_shown(child) for child in array.flatten()]
    if pa.types.is_map(array.type):
        array = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
    if pa.types.is_list(array.type):
        return array.value_lengths().to_pylist(), _shown(array.flatten())
    return [value + 0.0 if isinstance(value, float) else value for value in array.to_pylist()]


@given(TYPES.flatmap(lambda type_: st.tuples(st.just(type_), st.lists(values_of(type_), max_size=5))))
@examples(100)
def test_every_value_of_every_type_comes_back(case: tuple[Type, list[Any]]) -> None:
    type_, values = case
    array = array_of(type_, values)
    assert same(through_sqlite(type_, array), array)
    assert same(through_sqlite(type_, array.slice(1)), array.slice(1))


def sorted_in_sqlite(type_: str, values: Sequence[Any]) -> list[Any]:
    kind = parse_type(type_)
    connection = apsw.Connection(":memory:")
    connection.create_collation("DECIMAL", compared_decimals)
    connection.create_collation("TIMESTAMP", compared_times)
    connection.execute(f"CREATE TABLE t (x {declared(kind)})")
    rows = encoded(kind, pa.array(values, arrow_type(kind)))
    connection.executemany("INSERT INTO t VALUES (?)", ((value,) for value in rows))
    found = [value for (value,) in connection.execute("SELECT x FROM t ORDER BY x")]
    return list(decoded(kind, found).to_pylist())


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("DOUBLE", [None, -math.inf, -1.5, 0.0, 2.0, 10.0, math.inf, math.nan]),
        ("DECIMAL(10,2)", [None, *map(Number, ("-100.00", "-9.50", "0.00", "0.05", "9.00", "10.00", "100.00"))]),
        ("DECIMAL(38,0)", [Number(10**37), Number(10**37 + 1), Number(10**37 + 2)]),
        ("DATE", [None, date(1, 1, 1), date(1969, 12, 31), date(2024, 1, 31), date(9999, 12, 31)]),
        ("TIMESTAMP", [None, datetime(1, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC)]),
        ("BIGINT", [None, -(2**63), -1, 0, 2**63 - 1]),
        ("BOOLEAN", [None, False, True]),
        ("BINARY", [None, b"", b"\x00", b"\x00\xff", b"a"]),
    ],
)
def test_values_sort_as_in_spark(type_: str, values: list[Any]) -> None:
    found = sorted_in_sqlite(type_, values[::-1])
    assert found == values or (found[:-1] == values[:-1] and math.isnan(found[-1]))


def test_a_string_that_is_not_utf8_keeps_its_bytes() -> None:
    for type_, wrap in ((Scalar("STRING"), False), (Array(Scalar("STRING")), True)):
        odd = pa.array([b"\xff\xfe", b"Z\xc3\xbcrich", None]).view(pa.string())
        array = pa.ListArray.from_arrays(pa.array([0, 3], pa.int32()), odd, type=arrow_type(type_)) if wrap else odd
        back = through_sqlite(type_, array)
        inside = back.flatten() if wrap else back
        assert inside.view(pa.binary()).to_pylist() == [b"\xff\xfe", b"Z\xc3\xbcrich", None]


@pytest.mark.parametrize(
    ("one", "other", "sign"),
    [
        ("10", "9.5", 1),
        ("-10", "9", -1),
        ("1e2", "100.00", 0),
        ("0.10", "0.1", 0),
        ("100000000000000000000000000000000001", "100000000000000000000000000000000000", 1),
        ("x", "1", -1),
        ("1", "x", 1),
        ("x", "y", -1),
        ("nan", "1", -1),
    ],
)
def test_decimals_compare_as_numbers(one: str, other: str, sign: int) -> None:
    assert compared_decimals(one, other) == sign


@pytest.mark.parametrize(
    ("one", "other", "sign"),
    [
        ("2024-01-31T12:00:00.000000Z", "2024-01-31 12:00:00", 0),
        ("2024-01-31T12:00:00.000000Z", "2024-01-31", 1),
        ("2024-01-31T12:00:00.000000Z", "2024-01-31 09:00:00", 1),
        ("2024-01-31T12:00:00.000000Z", "2024-01-31T14:00:00+02:00", 0),
        ("2024-01-31T12:00:00.000000", "2024-01-31T12:00:00.000001", -1),
        ("2024-01-31T12:00:00.000000Z", "2024-02", -1),
    ],
)
def test_times_compare_however_they_are_written(one: str, other: str, sign: int) -> None:
    assert compared_times(one, other) == sign
    assert compared_times(other, one) == -sign
