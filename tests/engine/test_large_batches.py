"""Changes that are too many for one process: written by tasks, kept by the log as files, the same as others."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.batches import check_size
from penstock.engine.query import Tuning
from penstock.engine.run import prepared
from penstock.engine.sinks import Collected
from penstock.engine.staged import remove_unused
from penstock.errors import EngineError
from penstock.log import Log, Record
from tests.engine.conftest import Bench
from tests.texts import refused

SQL = """
    CREATE STREAM orders (id BIGINT, customer BIGINT, note STRING);
    CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING, tags ARRAY<STRING>, more MAP<STRING, STRUCT<a: INT>>);
    CREATE TABLE bag (x BIGINT, y DOUBLE);
    CREATE VIEW counts AS SELECT customer, count(*) AS n, collect_list(id) AS ids FROM orders GROUP BY customer;
    CREATE VIEW places AS SELECT * FROM customers;
    CREATE VIEW notes AS SELECT note FROM orders;
    CREATE VIEW by_city WITH (key = 'city, id') AS
      SELECT city, orders.id, struct(count(*) AS n) AS s FROM orders JOIN customers ON customer = customers.id
      GROUP BY city, orders.id;
    CREATE VIEW bags WITH (key = 'y') AS SELECT y, x FROM bag;
    CREATE VIEW total AS SELECT count(*) AS n FROM orders;
"""
LIMIT = 6_000
pytestmark = pytest.mark.spark


def limited(bench: Bench, limit: int) -> Bench:
    bench.ready = prepared(bench.spark, bench.pipeline, bench.log, bench.home, tuning=Tuning(collected_bytes=limit))
    return bench


def orders(start: int, end: int) -> list[dict[str, Any]]:
    return [{"id": n, "customer": n % 40, "note": "again" if n % 3 else None} for n in range(start, end)]


def customers(city: str, *ids: int) -> list[dict[str, Any]]:
    return [{"id": n, "city": city, "tags": ["a", None], "more": {"k": {"a": n}}} for n in ids]


def steps() -> list[dict[str, Any]]:
    bag = [{"x": n, "y": n / 2} for n in range(50)]
    return [
        {"orders": orders(0, 300), "customers": customers("Rome", *range(40)), "bag": bag},
        {"customers": customers("Oslo", *range(0, 40, 2)), "bag": [Record(row, deleted=True) for row in bag[::3]]},
        {"orders": orders(300, 310)},
        {"customers": [Record({"id": 1}, deleted=True)], "bag": [Record({"x": -1, "y": 1.0}, deleted=True)] * 200},
    ]


def topics(bench: Bench) -> dict[str, list[tuple[Any, ...]]]:
    """All that leaves: of every topic the records in order."""
    names = [topic.name for topic in bench.log.topics() if topic.name.startswith("test.1.")]
    return {
        name: [(entry.offset, entry.value, entry.deleted, entry.replaces) for entry in bench.log.read(name)]
        for name in names
    }


def files(bench: Bench) -> list[list[str]]:
    """Of each batch, the staged files that its frame refers to."""
    headers = [bench.log.find("test/1", done.batch) for done in bench.batches]
    return [[block.file for block in header.blocks if block.file] for header in headers if header]


def left(bench: Bench) -> list[str]:
    """What lies about when the batches are done, beside what frames refer to."""
    used = {name for batch in files(bench) for name in batch}
    staged = [path.name for path in (bench.log.folder / "staged").iterdir() if path.name not in used]
    return staged + [path.name for path in (bench.ready.lineage.folder / "changes").glob("*.packed")]


def test_the_answers_and_their_order_are_the_same_whatever_the_limit(bench: Callable[..., Bench]) -> None:
    plain, large = bench(SQL), limited(bench(SQL), LIMIT)
    for step in steps():
        for each in (plain, large):
            each.append(step)
            each.drain()
    assert topics(large) == topics(plain)
    assert [(done.changes, done.letters) for done in large.batches] == [(d.changes, d.letters) for d in plain.batches]
    assert len(files(large)[0]) > 6 and not any(files(plain))
    assert not left(large) + left(plain)
    large.check()


def test_a_large_batch_that_is_run_again_changes_nothing_and_leaves_nothing(bench: Callable[..., Bench]) -> None:
    made = limited(bench(SQL), LIMIT)
    for step in steps()[:2]:
        made.append(step)
        made.drain()
    before = topics(made)
    (made.ready.lineage.checkpoint / "commits" / "1").unlink()
    made.start()
    limited(made, LIMIT).drain()
    assert made.batches.pop().repeated
    assert topics(made) == before and not left(made)
    made.check()


def test_two_rows_under_a_key_stop_a_large_batch_too(bench: Callable[..., Bench]) -> None:
    made = limited(bench(SQL), 0)
    made.append(steps()[0] | {"bag": [{"x": n, "y": float(n // 2)} for n in range(100)]})
    with pytest.raises(EngineError, match=r'view "bags" has several rows under the key \{"y":\d+\.0\}'):
        made.drain()
    assert not topics(made)["test.1.counts"] and not left(made)


def test_what_a_run_left_that_died_is_removed_and_nothing_else(bench: Callable[..., Bench]) -> None:
    made = limited(bench(SQL), LIMIT)
    made.append(steps()[0])
    made.drain()
    staged = made.log.folder / "staged"
    dead = ["test~1~1~a.arrow", "0f+test~1~1~a.arrow", "0f+test~1~0~a.arrow"]
    others = ["test~2~1~a.arrow", "my-test~1~1~a.arrow", "0f+my-test~1~1~a.arrow", "0f.arrow"]
    for name in (*dead, *others):
        (staged / name).touch()
    remove_unused(made.log, made.ready.lineage)
    assert sorted(left(made)) == sorted(others)
    assert len(topics(made)["test.1.counts"]) == 40


def test_more_changes_than_a_frame_can_hold_are_refused() -> None:
    most = 1 << 24
    check_size(7, Collected({"v": most - 1}, 1, {}, staged=True))
    with refused("engine/batch-too-large"):
        check_size(7, Collected({"v": most, "w": 0}, 1, {}, staged=True))


CLUSTER = """
import sys
from pathlib import Path
from penstock.engine import session
from tests.engine.conftest import Bench
from tests.engine.test_large_batches import LIMIT, SQL, left, limited, steps

quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
conf = {f"spark.{side}.extraJavaOptions": quick for side in ("driver", "executor")} | {"spark.executor.memory": "512m"}
with session("cluster", master="local-cluster[2,1,1024]", conf=conf | {"spark.speculation": "true"}) as spark:
    made = limited(Bench(spark, Path(sys.argv[1]), SQL), LIMIT)
    for step in steps():
        made.append(step)
        made.drain()
    assert not left(made), left(made)
    made.log.close()
"""


def test_executors_of_their_own_write_the_same(bench: Callable[..., Bench], tmp_path: Path) -> None:
    plain = bench(SQL)
    for step in steps():
        plain.append(step)
        plain.drain()
    command = [sys.executable, "-c", CLUSTER, str(tmp_path / "cluster")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240, start_new_session=True, check=False)
    assert ran.returncode == 0, ran.stderr
    with Log.open(tmp_path / "cluster" / "log", create=False) as log:
        found = {name: [(e.offset, e.value, e.deleted, e.replaces) for e in log.read(name)] for name in topics(plain)}
    assert found == topics(plain)
