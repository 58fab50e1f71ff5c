"""A pipeline on executors of their own: the kernel and the state live in other Java processes.

It was begun on one machine, goes on with a cluster, and comes back.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.engine.topics import ensure_sources
from penstock.log import Log, Record
from penstock.model import load_pipeline

PIPELINE = """\
SET shuffle_partitions = 2;
CREATE STREAM orders (id BIGINT, customer BIGINT, amount DOUBLE);
CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING);
CREATE TABLE returns (id BIGINT, reason STRING);
CREATE VIEW spend AS SELECT city, sum(amount) AS spend, max(amount) AS largest, collect_list(o.id) AS ids
  FROM orders o JOIN customers ON customer = customers.id GROUP BY city;
CREATE VIEW sizes AS SELECT size(ids) AS n, count(*) AS cities FROM spend GROUP BY size(ids);
CREATE VIEW returned AS SELECT o.id, reason
  FROM orders o JOIN returns r ON o.id = r.id AND o.customer <> length(reason);
CREATE VIEW total AS SELECT count(*) AS n, approx_count_distinct(customer) AS customers FROM orders;
"""
QUICK = [f"--conf=spark.{side}.extraJavaOptions=-XX:TieredStopAtLevel=1" for side in ("driver", "executor")]
HERE = ["--master", "local[2]", QUICK[0]]
CLUSTER = ["--master", "local-cluster[2,1,1024]", *QUICK, "--conf=spark.executor.memory=512m"]


def penstock(*arguments: str) -> str:
    command = [sys.executable, "-c", "from penstock.cli import main; main()", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, start_new_session=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.spark
@pytest.mark.timeout(1800)  # a cluster is started, and Spark three times more
def test_a_pipeline_runs_on_a_cluster_and_equals_batch(tmp_path: Path) -> None:
    shop, place = tmp_path / "shop", ["--log", str(tmp_path / "log")]
    shop.mkdir()
    (shop / "pipeline.sql").write_text(PIPELINE)
    with Log.open(tmp_path / "log") as log:
        ensure_sources(log, load_pipeline(shop))
        log.append("customers", [{"id": n, "city": f"city {n % 7}"} for n in range(50)])
        log.append("orders", [{"id": n, "customer": n % 60, "amount": n / 4} for n in range(1000)])
        penstock("run", str(shop), "--once", *place, *CLUSTER)
        moved = [{"id": n, "city": "elsewhere"} for n in range(0, 50, 3)]
        log.append("customers", [*moved, Record({"id": 1}, deleted=True)])
        log.append("returns", [{"id": 7, "reason": "broken"}, {"id": 8, "reason": "late"}])
        penstock("run", str(shop), "--once", *place, *HERE)
        log.append("orders", [{"id": n, "customer": n % 60, "amount": n / 4} for n in range(1000, 1100)])
    penstock("run", str(shop), "--once", *place, *CLUSTER)
    verdicts = penstock("verify", "--pipeline", str(shop), *place, *HERE).splitlines()
    assert [line.partition(", ")[0] for line in verdicts] == [
        f"{view}: equal" for view in ("spend", "sizes", "returned", "total")
    ]
