"""Classes that Java reads once for all its starts: an archive beside the kernel, with which Spark starts twice as fast.

`python -m penstock.engine.sharing` makes it from the classes that a small pipeline needs, and `make setup` runs that.
It fits one Java, one PySpark and one kernel. One that does not fit, or is missing, Java leaves aside without a word.
"""

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pyspark

from penstock.engine.java import find_java
from penstock.engine.oracle import Oracle
from penstock.engine.run import Run, prepared
from penstock.engine.session import ARCHIVE, KERNEL, QUIET, session
from penstock.log import Log
from penstock.model import pipeline_of

PATIENCE = timedelta(minutes=5)
"""Java writes the archive when it ends."""
SQL = """
CREATE STREAM orders (id BIGINT, customer BIGINT, amount DOUBLE, at TIMESTAMP)
  WITH (event_time = 'at', watermark = '5 seconds');
CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING);
CREATE VIEW cities AS
  SELECT city, count(*) AS orders, sum(amount) AS total, max(amount) AS largest
  FROM orders JOIN customers ON customer = customers.id GROUP BY city;
CREATE VIEW minutes WITH (emit = 'final') AS
  SELECT window.start, count(*) AS orders FROM orders GROUP BY window(at, '1 minute');
"""
NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)
STEPS = (
    {
        "orders": [{"id": 1, "customer": 1, "amount": 9.5, "at": NOON}],
        "customers": [{"id": 1, "city": "Rome"}],
    },
    {
        "orders": [{"id": 2, "customer": 1, "amount": 3.0, "at": NOON + timedelta(minutes=5)}],
        "customers": [{"id": 1, "city": "Oslo"}],
    },
)


def make(archive: Path = ARCHIVE) -> None:
    """Afterwards the archive fits, unless Java could not make one."""
    if is_fresh(archive):
        return
    print(f"making {archive.name}, with which Spark starts sooner", file=sys.stderr, flush=True)
    with TemporaryDirectory(dir=archive.parent, prefix=".kernel-") as work:
        made = Path(work, archive.name)
        java = f'"-XX:ArchiveClassesAtExit={made}" {QUIET} -XX:TieredStopAtLevel=1'
        run_once(Path(work), java)
        if made.exists():
            # In one step: another process may be starting Spark with the old one right now.
            os.replace(made, archive)


def is_fresh(archive: Path) -> bool:
    """Whether it is newer than what it was made from."""
    sources = KERNEL, Path(find_java(os.environ).command).resolve(), Path(pyspark.__file__).with_name("jars")
    made_at = archive.stat().st_mtime if archive.exists() else 0.0
    return all(path.stat().st_mtime < made_at for path in sources)


def run_once(folder: Path, java: str) -> None:
    """A pipeline from its start to its end, and what Spark batch says of it."""
    conf = {"spark.driver.extraJavaOptions": java}
    with (
        session("sharing", master="local[2]", conf=conf, patience=PATIENCE) as spark,
        Log.open(folder / "log") as log,
    ):
        pipeline = pipeline_of(SQL, name="sharing")
        ready = prepared(spark, pipeline, log, folder / "home")
        for step in STEPS:
            log.append_all(step)
            run = Run(spark, log, folder / "home", ready, lambda _: None)
            run.wait(run.start(once=True))
        Oracle(spark, pipeline, log.folder, log.mark().next_frame).rows("cities")


if __name__ == "__main__":
    make()
