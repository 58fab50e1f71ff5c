"""The demo: orders and customers go into a log, and an answer that Spark computes over it changes.

After every step two queries look at the log. A streaming query has counted the orders as they came. A batch
query joins orders and customers as they stand at that place of the log, and gives the spend by city.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from penstock.engine import read_topic, session, stream_topic
from penstock.log import Log, Record

Spark = Any
"""PySpark's types stay in the engine."""
Answer = tuple[tuple[str, int, Decimal], ...]
"""City, orders, spend."""

MORNING = datetime(2024, 5, 1, 9, 0, tzinfo=UTC)
NAMES = {1: "ann", 2: "bob", 3: "cleo"}
SPEND_BY_CITY = """
    WITH home AS (
      SELECT id, max_by(city, _place) AS city, max_by(_deleted, _place) AS gone FROM customers GROUP BY id)
    SELECT city, count(*) AS orders, sum(amount) AS spend
    FROM orders JOIN home ON customer = home.id
    WHERE NOT gone GROUP BY city ORDER BY city"""
SEEN_SO_FAR = "SELECT count(*) AS orders, coalesce(sum(amount), 0) AS spend FROM incoming"


@dataclass(frozen=True)
class Step:
    """Something that happens in the shop, and the records that tell of it."""

    title: str
    rows: Mapping[str, Sequence[Mapping[str, Any] | Record]]


@dataclass(frozen=True)
class Scene:
    """What is seen after a step: the answer over the frames before `until_frame`, the totals of the stream."""

    step: Step
    until_frame: int
    answer: Answer
    orders: int
    spend: Decimal
    sealed: tuple[Path, ...] = ()


def order(number: int, customer: int, amount: str) -> Mapping[str, Any]:
    at = MORNING + timedelta(minutes=number)
    return {"id": number, "customer": customer, "amount": Decimal(amount), "at": at}


def customer(number: int, city: str) -> Mapping[str, Any]:
    return {"id": number, "name": NAMES[number], "city": city}


STEPS = (
    Step(
        "Three customers, and their first orders.",
        {
            "customers": [customer(1, "Rome"), customer(2, "Oslo"), customer(3, "Rome")],
            "orders": [order(1, 1, "12.50"), order(2, 2, "30.00"), order(3, 3, "7.50")],
        },
    ),
    Step("More orders: the sums rise.", {"orders": [order(4, 1, "20.00"), order(5, 2, "5.00")]}),
    Step("bob moves to Rome: his row is replaced, his orders go with him.", {"customers": [customer(2, "Rome")]}),
    Step(
        "ann moves to Lima and orders there, in one transaction.",
        {"customers": [customer(1, "Lima")], "orders": [order(6, 1, "40.00")]},
    ),
    Step("cleo is deleted: her orders no longer have a city.", {"customers": [Record({"id": 3}, deleted=True)]}),
)


def demo(folder: Path) -> Generator[Scene, None, None]:
    """A scene after each step, and in the end the second one again, from sealed files; in an empty folder."""
    with Log.open(folder / "log") as log, session("penstock demo", master="local[2]") as spark:
        log.create_topic("customers", "id BIGINT NOT NULL, name STRING, city STRING", key="id")
        log.create_topic(
            "orders", "id BIGINT NOT NULL, customer BIGINT, amount DECIMAL(10,2), at TIMESTAMP", event_time="at"
        )
        stream = _start_counting(spark, log.folder, folder / "checkpoint")
        scenes = []
        for step in STEPS:
            log.append_all(step.rows)
            stream.processAllAvailable()
            scenes.append(_scene(spark, log, step))
            yield scenes[-1]
        log.seal()
        yield _again(spark, log, scenes[1])


def _start_counting(spark: Spark, log: Path, checkpoint: Path) -> Any:
    stream_topic(spark, log, "orders").createOrReplaceTempView("incoming")
    totals = spark.sql(SEEN_SO_FAR).writeStream.format("memory").queryName("seen").outputMode("complete")
    return totals.option("checkpointLocation", str(checkpoint)).start()


def _scene(spark: Spark, log: Log, step: Step) -> Scene:
    until = log.mark().next_frame
    [seen] = spark.table("seen").collect()
    return Scene(step, until, _answer(spark, log.folder, until), seen.orders, seen.spend)


def _answer(spark: Spark, log: Path, until_frame: int) -> Answer:
    for topic in ("orders", "customers"):
        # A temporary view leaves hidden columns out: those that the query needs are named.
        found = read_topic(spark, log, topic, until_frame=until_frame)
        found.select("*", "_place", "_deleted").createOrReplaceTempView(topic)
    return tuple((row.city, row.orders, row.spend) for row in spark.sql(SPEND_BY_CITY).collect())


def _again(spark: Spark, log: Log, earlier: Scene) -> Scene:
    title = "The log is sealed into Arrow files, and read as it was after step 2: the same answer."
    answer = _answer(spark, log.folder, earlier.until_frame)
    sealed = sorted(path.relative_to(log.folder) for path in log.folder.glob("sealed/*/*.arrow"))
    return replace(earlier, step=Step(title, {}), answer=answer, sealed=tuple(sealed))
