"""What messages are read as, case by case. The kernel is held to the same cases in tests/engine/kafka/test_cases.py."""

from typing import Any

import pytest
from confluent_kafka import Message

from penstock.log.columns import columns_of
from penstock.log.kafka.messages import Records, Unreadable
from penstock.log.topic import Topic
from penstock.text import Unfit
from tests.log.kafka.cases import MESSAGES, Bad, Case

ALL = [(topic, case) for topic, cases in MESSAGES.items() for case in cases]


def read(topic: Topic, case: Case) -> tuple[Any, bool, Any]:
    """The row with all its columns, whether it is a deletion, and what it replaces; or why there is none."""
    message = Message(topic.name, 0, 0, key=case.key, value=case.value, headers=list(case.headers))
    try:
        record = Records(topic).record_of(message)
    except (Unreadable, Unfit) as error:
        return Bad(str(error)), False, None
    row = columns_of(topic, [record]).batch.to_pylist()[0]
    return {name: row[name] for name in topic.schema.names}, record.deleted, row.get("_replaces")


def text_of(row: Any) -> str:
    """NaN is like NaN, and UTC like UTC."""
    return repr(row).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc")


@pytest.mark.parametrize(("topic", "case"), ALL, ids=lambda each: each.name if isinstance(each, Topic) else "")
def test_a_message_is_read_as_told(topic: Topic, case: Case) -> None:
    row, deleted, replaces = read(topic, case)
    want = case.want if isinstance(case.want, Bad) else dict.fromkeys(topic.schema.names) | case.want
    assert (text_of(row), deleted, replaces) == (text_of(want), case.deleted, case.replaces)
