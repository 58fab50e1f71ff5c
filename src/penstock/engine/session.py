"""A Spark session of our own: the kernel on its class path, quiet, and gone when we are done with it.

`with session() as spark:` starts one Java process and ends it again, whatever happens inside. Leaving takes
at most about twice the `patience`: first everything is stopped in order, then the Java process is given time
to end, then it is killed. State and offsets that Spark has committed survive that; a batch under way does
not, and is run again.

One process has at most one session at a time. The defaults suit one machine with 2 to 16 cores. On a
cluster, set `spark.sql.shuffle.partitions` yourself: a checkpoint cannot go on with another number. A cluster
that cannot be reached, or that gives no executor, is an error after a while.
"""

import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from signal import SIGKILL
from threading import Thread
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from penstock.engine.calls import quickened
from penstock.engine.checkpoint import FILES, OUR_FILES, STATE_FORMAT
from penstock.engine.executors import await_executors
from penstock.engine.gateway import launched
from penstock.engine.java import find_java
from penstock.engine.master import check_reachable, is_local, is_on_this_machine, slots
from penstock.engine.wording import plain_text
from penstock.errors import EngineError

KERNEL: Final = Path(__file__).with_name("kernel.jar")
LOGGING: Final = Path(__file__).with_name("log4j2.properties")
ARCHIVE: Final = Path(__file__).with_name("kernel.jsa")
"""The classes that Java need not read one by one, see `sharing`; it may be missing."""
QUIET: Final = "-Xlog:cds*=off"
"""Java is not to speak of archives."""
JAVA_OPTIONS: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""What Java and Spark read of the environment."""
PATIENCE: Final = timedelta(seconds=10)

_STATE = "spark.sql.streaming.stateStore"
_STATE_PACKAGE = "org.apache.spark.sql.execution.streaming.state"
_DEFAULTS: Final[Mapping[str, str]] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.sql.session.timeZone": "UTC",
    # Every operator of every view has code of its own; what falls out of Spark's cache is compiled again in each batch.
    "spark.sql.codegen.cache.maxEntries": "5000",
    # Spark takes closures apart in every batch; with this it does for fewer of them.
    "spark.sql.execution.usePartitionEvaluator": "true",
    # It takes a subquery in SELECT beneath the LIMIT of the rows, and another rule then their order away.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.PushProjectionThroughLimitAndOffset",
    # Python functions stay whole in their plans, where a fingerprint is taken of them.
    "spark.broadcast.UDFCompressionThreshold": "1g",
    "spark.sql.join.asofJoin.enabled": "true",
    # A cast that fails gives NULL; with ANSI it would stop a pipeline at the same record for ever.
    "spark.sql.ansi.enabled": "false",
    f"{_STATE}.providerClass": f"{_STATE_PACKAGE}.RocksDBStateStoreProvider",
    f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "true",
    f"{_STATE}.rocksdb.trackTotalNumberOfRows": "false",
    f"{_STATE}.rocksdb.boundedMemoryUsage": "true",
}
# Where the user's value is added to ours instead of replacing it, and what stands between the two.
_ADDED: Final[Mapping[str, str]] = {
    "spark.jars": ",",
    "spark.driver.extraJavaOptions": " ",
    "spark.driver.extraClassPath": os.pathsep,
    "spark.sql.extensions": ",",
    "spark.sql.optimizer.excludedRules": ",",
}


@contextmanager
def session(
    name: str = "penstock",
    *,
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    log_level: str = "error",
    patience: timedelta = PATIENCE,
) -> Iterator[SparkSession]:
    """A session for the length of a `with` block; `conf` adds to the defaults or overrides them."""
    spark = start(name, master=master, conf=conf, log_level=log_level)
    try:
        yield spark
    finally:
        leave(spark, patience=patience)


def start(
    name: str, *, master: str = "local[*]", conf: Mapping[str, str] | None = None, log_level: str = "error"
) -> SparkSession:
    """A new session; whoever starts one calls `leave` in the end."""
    chosen = settings(name, master=master, cores=usable_cores(), conf=conf or {}, log_level=log_level)
    _check_surroundings()
    check_reachable(chosen["spark.master"])
    # Both the driver and Spark's Java side read this when they start Python workers. On a cluster, Python may lie
    # elsewhere than here.
    if is_local(chosen["spark.master"]) or "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    # It would print every error of Spark's analysis, also those that mean no more than "compile another view first".
    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True
    others = _children()
    try:
        SparkContext._ensure_initialized(gateway=quickened(launched(SparkConf().setAll(list(chosen.items())))))
        spark = SparkSession.builder.config(map=dict(chosen)).getOrCreate()
    except KeyboardInterrupt:
        # PySpark forgets a Java process that is still starting, and that one never ends by itself.
        for child in _children() - others:
            with suppress(ProcessLookupError):
                os.kill(child, SIGKILL)
        raise
    except (PySparkException, Py4JError) as error:
        _end_java(PATIENCE)
        raise EngineError(
            "Spark did not start",
            detail=plain_text(_first_line(error)),
            hint="What its Java process printed is above; with spark.driver.extraJavaOptions set to "
            "-Dpenstock.log.level=info it says more.",
        ) from error
    if not is_local(chosen["spark.master"]):
        try:
            await_executors(spark)
        except BaseException:
            leave(spark)
            raise
    return spark


def leave(spark: SparkSession, *, patience: timedelta = PATIENCE) -> None:
    """Ends the session and its Java process, in order if it lets us, by force if not."""
    stopping = Thread(target=_stop, args=(spark,), name="penstock-leave", daemon=True)
    stopping.start()
    logging.getLogger().addFilter(_not_cut_off)
    try:
        stopping.join(patience.total_seconds())
    finally:
        # Also on a second Ctrl-C: nobody waits for a Java process that nobody needs.
        _end_java(patience)
        stopping.join(1)
        logging.getLogger().removeFilter(_not_cut_off)


def _not_cut_off(record: logging.LogRecord) -> bool:
    """Py4J complains with a traceback when the Java process ends before its last answer; we meant it to."""
    return record.msg != "Exception while sending command."


def settings(name: str, *, master: str, cores: int, conf: Mapping[str, str], log_level: str) -> Mapping[str, str]:
    """What Spark is started with: our defaults for `master`, then `conf`."""
    if wrong := [key for key in conf if not key.startswith("spark.")]:
        raise EngineError(
            f'"{wrong[0]}" is no setting of Spark',
            detail="The names of Spark's settings begin with spark.",
            hint=f'Did you mean "spark.{wrong[0]}"?',
        )
    master = master.replace("[*", f"[{cores}")
    ours = {
        **_DEFAULTS,
        "spark.app.name": name,
        "spark.master": master,
        "spark.sql.shuffle.partitions": str(slots(master) or cores),
        "spark.jars": str(KERNEL),
        "spark.sql.extensions": "org.apache.spark.sql.penstock.Extensions",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOGGING.as_uri()} "
        f"-Dpenstock.log.level={log_level.lower()}{_collector(conf)}{_archive(conf)}",
    }
    if is_on_this_machine(master):
        # No name look-up, no open port: machines with odd host names start as quickly as others.
        ours |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if is_local(master):
        # Tasks of a stage wait for each other: one that could not read what it needs ends all of them.
        ours["spark.stage.maxConsecutiveAttempts"] = "1"
    else:
        # Files of state are named by who has written them: a task that everybody holds for dead, and that still writes
        # at its end, spoils nothing.
        ours[STATE_FORMAT] = "2"
    if master.startswith("local"):
        # Checkpoints are on this machine's disk: no child processes, and synced. Spark uses its file system before it
        # has loaded any jar of ours, so that the kernel has to be where Java itself finds it.
        ours["spark.driver.extraClassPath"] = str(KERNEL)
        ours["spark.hadoop.fs.file.impl"] = "penstock.kernel.engine.LocalFiles"
        ours[FILES] = OUR_FILES
    added = {
        key: between.join(filter(None, (ours.get(key), conf[key]))) for key, between in _ADDED.items() if key in conf
    }
    return {**ours, **conf, **added}


def _collector(conf: Mapping[str, str]) -> str:
    """Java's collector for throughput, unless the user names one: Java refuses to start with two."""
    return "" if re.search(r"-XX:(\+Use\w+GC\b|Flags=)|@", _named(conf)) else " -XX:+UseParallelGC"


def _archive(conf: Mapping[str, str]) -> str:
    """Our archive of classes, unless there is none or the user has to do with archives."""
    if not ARCHIVE.exists() or os.pathsep in str(ARCHIVE) or "Archive" in _named(conf):
        return ""
    return f' "-XX:SharedArchiveFile={ARCHIVE}" {QUIET}'


def _named(conf: Mapping[str, str]) -> str:
    """The options of Java that the user names."""
    named = [conf.get(f"spark.driver.{kind}JavaOptions", "") for kind in ("extra", "default")]
    return " ".join([*named, *(os.environ.get(name, "") for name in JAVA_OPTIONS)])


def usable_cores() -> int:
    """The cores that this process may use, but at least 2 and at most 16."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2
    return min(max(allowed, 2), 16)


def _check_surroundings() -> None:
    """Raises an `EngineError` for what would make Spark fail later and less clearly."""
    if SparkContext._gateway is not None:
        raise EngineError(
            "this process has a Spark session already",
            detail="A Python process has one Java process, whose settings are fixed when it starts.",
            hint="Leave the other session first, or start another process.",
        )
    if not KERNEL.exists():
        raise EngineError("the kernel is not built", detail=f"There is no {KERNEL}.", hint="Run: make setup")
    find_java(os.environ)


def _stop(spark: SparkSession) -> None:
    """Queries first, then the state that they used, then Spark; a step that fails does not spare the next."""
    with suppress(Exception):
        for query in spark.streams.active:
            query.stop()
    with suppress(Exception):
        # Without this RocksDB's threads may hold the Java process at its exit for ten minutes.
        jvm: Any = spark._jvm
        getattr(jvm, f"{_STATE_PACKAGE}.StateStore").stop()
    with suppress(Exception):
        spark.stop()


def _end_java(patience: timedelta) -> None:
    """Ends the Java process behind PySpark and makes PySpark forget it, so that another can be started."""
    gateway: Any = SparkContext._gateway
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is not None:
        _end(process, patience)
    with suppress(Exception):
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None


def _end(process: subprocess.Popen[bytes], patience: timedelta) -> None:
    """Closing its standard input is how PySpark's Java process is told to go."""
    try:
        with suppress(OSError):
            process.stdin.close() if process.stdin else None
        process.wait(patience.total_seconds())
    except subprocess.TimeoutExpired:
        pass
    finally:
        process.kill()
        process.wait()


def _children() -> set[int]:
    """The processes that this one has started, where the system tells."""
    found = Path("/proc/self/task").glob("*/children")
    return {int(child) for path in found for child in path.read_text().split()}


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # Py4J puts the name of the call first and the Java exception after it.
    return next((line.lstrip(": ") for line in lines if line.startswith(":")), lines[0] if lines else "")
