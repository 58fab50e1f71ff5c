"""How cases are run: where Spark is, with which settings, how many at once.

What a case costs is mostly Spark's: planning, starting a query, and the fixed cost of every batch. So Spark is tuned
for many small queries: expressions are interpreted, not compiled, and Java's compiler does only what is quick. This
changes how soon answers come, not what they are.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from penstock.app.testing.bench import Ground
from penstock.engine.session import session

QUICK: Mapping[str, str] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}
"""Set in the session of every case."""
JAVA = "spark.driver.extraJavaOptions"
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
CLOSED_SOON = {"spark.sql.streaming.stateStore.maintenanceInterval": "15s"}
"""Spark's maintenance closes the state of queries that are over."""


@dataclass(frozen=True)
class How:
    """`conf` is stronger than what is ours; in `batch` the cases are played by Spark's batch engine; `at_once` is as
    many as cores, where it is None.
    """

    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    at_once: int | None = None
    batch: bool = False

    @contextmanager
    def session(self, folder: Path) -> Iterator[Ground]:
        """Spark, with what it writes in the folder."""
        java = " ".join(filter(None, (QUICK_JAVA, self.conf.get(JAVA))))
        conf = {**CLOSED_SOON, "spark.local.dir": str(folder / "spark"), **self.conf, JAVA: java}
        with session("penstock test", master=self.master, conf=conf) as spark:
            yield Ground(spark, {name: self.conf.get(name, value) for name, value in QUICK.items()})
