"""Whatever a record holds, the message that is made of it gives it back."""

from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from confluent_kafka import Message
from hypothesis import given

from penstock.errors import SchemaError
from penstock.log import Record
from penstock.log.columns import Columns, columns_of
from penstock.log.kafka.messages import Outgoing, Records, outgoing
from penstock.log.topic import Topic
from penstock.log.values import Avro
from penstock.schema import Column, Scalar, Schema, Type
from tests.effort import examples
from tests.test_text import typed_values

NAMES = st.text("abc\x00é", min_size=1, max_size=3)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Topic, list[Record]]:
    """A topic of two columns, with a key or without, and a few records of every kind."""
    type_, value = draw(typed_values())
    schema = Schema((Column("k", Scalar("DOUBLE")), Column("v", type_)))
    key = draw(st.sampled_from([(), ("k",), ("k", "v") if _can_be_key(type_) else ("k",)]))
    topic = Topic("t", (schema,), key=key, values=draw(st.sampled_from([None, Avro()])))
    keys = st.none() | st.floats()
    row = st.fixed_dictionaries({"k": keys, "v": st.sampled_from([value, None])})
    record = st.builds(
        Record,
        row,
        headers=st.dictionaries(NAMES, st.binary(max_size=3), max_size=2),
        deleted=st.booleans(),
        replaces=st.none() | row,
    )
    return topic, draw(st.lists(record, min_size=1, max_size=4))


def _can_be_key(type_: Type) -> bool:
    return isinstance(type_, Scalar)


def sent(message: Outgoing, offset: int) -> Message:
    """As a consumer gets it."""
    return Message("t", 0, offset, key=message.key, value=message.value, headers=message.headers)


def text_of(columns: Columns) -> str:
    """All of it; NaN is like NaN, and a key's -0.0 is 0.0."""
    names = ["k", "v", "_deleted", "_headers", "_replaces"]
    rows: list[dict[str, Any]] = columns.batch.to_pylist()
    return repr([[row.get(name) or None if name.startswith("_") else row[name] for name in names] for row in rows])


@examples(300)
@given(cases())
def test_a_record_comes_back_from_its_message(case: tuple[Topic, list[Record]]) -> None:
    topic, records = case
    try:
        columns = columns_of(topic, records)
        columns.batch.to_pylist()
    except (SchemaError, ValueError, OverflowError):  # a time that no log takes
        return
    messages = [sent(each, at) for at, each in enumerate(outgoing(columns, "t", partition=None, turn=0))]
    again = columns_of(topic, [Records(topic).record_of(message) for message in messages])
    assert text_of(again).replace("-0.0", "0.0") == text_of(columns).replace("-0.0", "0.0")


@given(st.floats(), st.floats())
def test_equal_keys_are_equal_bytes(one: float, other: float) -> None:
    topic = Topic("t", (Schema((Column("k", Scalar("DOUBLE")),)),), key=("k",))
    table = pa.table({"k": pa.array([one, other], pa.float64())})
    first, second = (each.key for each in outgoing(columns_of(topic, table), "t", partition=None, turn=0))
    assert (first == second) == (one == other or (one != one and other != other))


@pytest.mark.parametrize(("partition", "turn", "chosen"), [(None, 5, [2, -1, 2]), (1, 5, [1, 1, 1])])
def test_a_partition_is_chosen_by_key_by_turn_or_by_the_writer(
    partition: int | None, turn: int, chosen: list[int]
) -> None:
    topic = Topic("t", (Schema((Column("k", Scalar("INT")),)),), partitions=3, key=("k",))
    columns = columns_of(topic, [{"k": None}, {"k": 1}, {"k": None}])
    assert [each.partition for each in outgoing(columns, "t", partition=partition, turn=turn)] == chosen
