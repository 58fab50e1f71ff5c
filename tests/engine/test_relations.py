"""What records amount to at the edges: deletions in a stream, topics with more columns, conditions that never hold."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.log import Record
from tests.engine.conftest import Bench

pytestmark = pytest.mark.spark


def test_a_deletion_in_a_stream_is_a_record_like_any_other(bench: Callable[..., Bench]) -> None:
    made = bench("""
        CREATE STREAM s (k BIGINT, t STRING);
        CREATE VIEW sums AS SELECT count(*) AS n, max(k) AS m, sum(k) AS s FROM s;
        CREATE VIEW plain AS SELECT * FROM s;
    """)
    made.append({"s": [{"k": 1, "t": "a"}, {"k": 2, "t": "b"}]})
    made.drain()
    made.append({"s": [Record({"k": 2, "t": "b"}, deleted=True)]})
    made.drain()
    made.check()
    assert made.content("sums") == [{"n": 3, "m": 2, "s": 5}]


def test_a_topic_may_have_more_columns_than_are_declared(bench: Callable[..., Bench]) -> None:
    made = bench("""
        CREATE STREAM wide (a BIGINT, b STRING, c DOUBLE);
        CREATE STREAM s (c DOUBLE, a BIGINT) WITH (topic = 'wide');
        CREATE TABLE rows (b STRING, a BIGINT) WITH (topic = 'wide');
        CREATE VIEW plain AS SELECT * FROM s;
        CREATE VIEW grouped AS SELECT a, sum(c) AS c FROM s GROUP BY a;
        CREATE VIEW bag AS SELECT * FROM rows;
    """)
    made.append({"wide": [{"a": 1, "b": "x", "c": 0.5}, {"a": 1, "b": "y", "c": 1.5}]})
    made.drain()
    made.check()
    assert sorted(row["c"] for row in made.content("plain")) == [0.5, 1.5]


def test_conditions_that_never_hold(bench: Callable[..., Bench]) -> None:
    made = bench("""
        CREATE STREAM s (k BIGINT, t STRING);
        CREATE VIEW nothing AS SELECT count(*) AS n FROM s WHERE k = 1 AND k = 2;
        CREATE VIEW pairs AS SELECT l.k, r.t FROM s l JOIN s r ON l.k = r.k AND l.k < r.k;
        CREATE VIEW groups AS SELECT k, count(*) AS n FROM s WHERE false GROUP BY k;
        CREATE VIEW some AS SELECT k FROM s UNION ALL SELECT k FROM s WHERE false;
    """)
    made.append({"s": [{"k": 1, "t": "a"}, {"k": 2, "t": "b"}]})
    made.drain()
    made.check()
    assert [made.content(view) for view in ("nothing", "pairs", "groups")] == [[{"n": 0}], [], []]


def test_rows_of_a_bag_may_have_maps(bench: Callable[..., Bench]) -> None:
    made = bench("CREATE TABLE rows (k INT, m MAP<STRING, INT>); CREATE VIEW bag AS SELECT k, m FROM rows;")
    rows: list[dict[str, Any]] = [{"k": 1, "m": {"a": 1, "b": None}}, {"k": 2, "m": None}, {"k": 3, "m": {}}]
    made.append({"rows": [*rows, rows[0]]})
    made.drain()
    made.check()
    made.append({"rows": [Record(rows[0], deleted=True), Record(rows[1], deleted=True)]})
    made.drain()
    made.check()
    assert sorted(row["k"] for row in made.content("bag")) == [1, 3]
