"""Values of every type as keys and as payload, fields inside them, and columns of every name."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from penstock.log import Record
from tests.engine.conftest import Bench
from tests.engine.rows import INFINITY, NAN

KEYS: dict[str, list[Any]] = {
    "BOOLEAN": [True, False],
    "TINYINT": [-128, 127],
    "SMALLINT": [-1, 300],
    "INT": [0, 2**31 - 1],
    "BIGINT": [-(2**63), 2**63 - 1],
    "FLOAT": [0.0, -0.0, NAN, -INFINITY],
    "DOUBLE": [0.0, -0.0, NAN, 0.1],
    "DECIMAL(10,2)": [Decimal("0.10"), Decimal("-99999999.99")],
    "DECIMAL(38,0)": [Decimal(10) ** 37, Decimal(-1)],
    "STRING": ["", "a", "ä", "\U0001f600"],
    "BINARY": [b"", b"\x00", b"\xff\x00"],
    "DATE": [date(1, 1, 1), date(9999, 12, 31)],
    "TIMESTAMP": [datetime(1, 1, 1, tzinfo=UTC), datetime(2024, 2, 29, 1, 2, 3, 456789, UTC)],
    "TIMESTAMP_NTZ": [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)],
}
NESTED = """
    CREATE STREAM s (
      k BIGINT, o STRUCT<k: BIGINT, x: DOUBLE, deep: STRUCT<a: STRING, b: BIGINT>>,
      l ARRAY<STRUCT<k: BIGINT, t: STRING>>, m MAP<STRING, STRUCT<k: BIGINT, t: STRING>>);
    CREATE TABLE d (k BIGINT PRIMARY KEY, o STRUCT<k: BIGINT, x: DOUBLE, deep: STRUCT<a: STRING, b: BIGINT>>);
    CREATE VIEW fields AS SELECT o.x, o.deep.b, l.t AS ts, m['a'].t AS t FROM s;
    CREATE VIEW grouped AS SELECT o.deep.b, sum(o.x) AS x, max(size(l)) AS n FROM s GROUP BY o.deep.b;
    CREATE VIEW inner_fields AS SELECT d.o.deep.b, s.o.x FROM s JOIN d ON s.o.deep.b = d.o.deep.b AND s.o.x > d.o.x;
    CREATE VIEW over AS SELECT sum(b) AS b FROM inner_fields;
    CREATE VIEW found AS SELECT o.deep.b, transform(l, e -> e.t) AS ts FROM s WHERE exists(l, e -> e.t = 'b');
"""
NAMES = """
    CREATE STREAM `Odd` (`a b` BIGINT, `c.d` STRING, `Größe` DOUBLE, `sum(x)` BIGINT, `select` BOOLEAN);
    CREATE VIEW plain AS SELECT * FROM odd;
    CREATE VIEW renamed AS SELECT `A B` AS `x.y`, `c.d` AS `ti``ck`, `größe` AS `GRÖSSE` FROM ODD;
    CREATE VIEW grouped AS SELECT `c.d`, count(*), sum(`sum(x)`) FROM odd GROUP BY `c.d`;
    CREATE VIEW over AS SELECT `x.y` + 1 AS `x.y` FROM Renamed WHERE `ti``ck` IS NOT NULL;
"""
pytestmark = pytest.mark.spark


def test_values_of_every_type_are_keys_of_tables(bench: Callable[..., Bench]) -> None:
    sql = "".join(
        f"CREATE TABLE t{n} (id {type_} PRIMARY KEY, v BIGINT);"
        f"CREATE VIEW rows{n} AS SELECT id, v FROM t{n};"
        f"CREATE VIEW groups{n} AS SELECT v, min(id) AS lo, max(id) AS hi, count(*) AS n FROM t{n} GROUP BY v;"
        f"CREATE VIEW pairs{n} AS SELECT a.id, b.v FROM t{n} a JOIN t{n} b ON a.id = b.id;"
        for n, type_ in enumerate(KEYS)
    )
    made = bench(sql)
    made.append({f"t{n}": [{"id": key, "v": 1} for key in keys] for n, keys in enumerate(KEYS.values())})
    made.append({f"t{n}": [{"id": keys[-1], "v": 2}] for n, keys in enumerate(KEYS.values())})
    made.drain()
    made.append({f"t{n}": [Record({"id": keys[0]}, deleted=True)] for n, keys in enumerate(KEYS.values())})
    made.drain()
    made.check()
    assert made.checked == 2


def test_fields_of_structs_are_read_by_their_names(bench: Callable[..., Bench]) -> None:
    made = bench(NESTED)
    rows = [
        {
            "k": n,
            "o": {"k": 100 + n, "x": n / 2, "deep": {"a": "text", "b": n % 2}},
            "l": [{"k": n, "t": "b" if n else "a"}, {"k": None, "t": None}],
            "m": {"a": {"k": n, "t": f"t{n}"}},
        }
        for n in range(4)
    ]
    made.append({"s": [*rows, {"k": 9}], "d": [{"k": row["k"], "o": row["o"]} for row in rows]})
    made.drain()
    made.append({"d": [{"k": 0, "o": {"k": 1, "x": -1.0, "deep": None}}, Record({"k": 1}, deleted=True)]})
    made.drain()
    made.check()
    assert sorted(row["x"] for row in made.content("fields") if row["x"] is not None) == [0.0, 0.5, 1.0, 1.5]


def test_columns_of_every_name_keep_it(bench: Callable[..., Bench]) -> None:
    made = bench(NAMES)
    made.append({"Odd": [{"a b": 1, "c.d": "x", "Größe": 0.5, "sum(x)": 7, "select": True}, {"a b": 2}]})
    made.drain()
    made.check()
    assert made.content("over") == [{"x.y": 2}]
    assert list(made.content("grouped")[0]) == ["c.d", "count(1)", "sum(sum(x))"]
