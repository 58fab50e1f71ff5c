"""As-of joins: at every batch each view equals Spark batch, whatever comes late, is corrected or deleted."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import penstock as ps
from penstock.engine.compile import compiled
from penstock.engine.explain import explained
from penstock.engine.plantext import plan_text
from penstock.engine.query import Query, Tuning
from penstock.log import Record
from penstock.model import Function, Pipeline, View, pipeline_of
from penstock.model.view import ViewOptions
from tests.effort import SOAK
from tests.engine.conftest import Bench
from tests.texts import assert_golden, refused

START = datetime(2024, 1, 1, tzinfo=UTC)
DECLARED = """
    CREATE STREAM orders (id INT, k INT, n INT, at TIMESTAMP) WITH (event_time = 'at', watermark = '5 seconds');
    CREATE STREAM rates (k INT, rate INT, at TIMESTAMP) WITH (event_time = 'at', watermark = '5 seconds');
    CREATE TABLE fees (k INT PRIMARY KEY, fee INT, since TIMESTAMP)
      WITH (event_time = 'since', history = 'all_fees', watermark = '20 seconds');
    CREATE TABLE taxes (k INT PRIMARY KEY, fee INT, since TIMESTAMP) WITH (event_time = 'since', history = 'all_taxes');
    CREATE TABLE offers (k INT, price INT, at TIMESTAMP);
"""
VIEWS = {
    "rated": "SELECT id, rate FROM orders o ASOF JOIN rates r MATCH_CONDITION (o.at >= r.at) ON o.k = r.k",
    "rated_or_not": "SELECT id, rate FROM orders o LEFT ASOF JOIN rates r MATCH_CONDITION (o.at > r.at) ON o.k = r.k",
    "rated_later": "SELECT id, rate FROM orders o LEFT ASOF JOIN rates r MATCH_CONDITION (o.at < r.at) ON o.k = r.k",
    "rated_anywhere": "SELECT id, rate FROM orders o ASOF JOIN rates r MATCH_CONDITION (o.at <= r.at)",
    "rated_lower": """SELECT id, rate FROM orders o LEFT ASOF JOIN rates r MATCH_CONDITION (o.at >= r.at)
        ON o.k = r.k AND r.rate <= o.n""",
    "priced": "SELECT id, price FROM orders o LEFT ASOF JOIN offers f MATCH_CONDITION (o.at >= f.at) USING (k)",
    "priced_later": "SELECT o.*, price FROM orders o ASOF JOIN offers f MATCH_CONDITION (o.at < f.at) USING (k)",
    "charged": "SELECT id, fee FROM orders o LEFT ASOF JOIN all_fees f MATCH_CONDITION (o.at >= f.since) ON o.k = f.k",
    "charged_now": "SELECT id, fee FROM orders o ASOF JOIN fees f MATCH_CONDITION (o.at >= f.since) ON o.k = f.k",
    "offered": "SELECT price, fee FROM offers f ASOF JOIN all_fees a MATCH_CONDITION (f.at >= a.since) ON f.k = a.k",
    "both": """SELECT id, rate, price FROM orders o ASOF JOIN rates r MATCH_CONDITION (o.at >= r.at) ON o.k = r.k
        LEFT ASOF JOIN offers f MATCH_CONDITION (r.at >= f.at) ON r.k = f.k""",
    "by_rate": """SELECT rate, count(*) AS n, max(id) AS last FROM orders o
        LEFT ASOF JOIN rates r MATCH_CONDITION (o.at >= r.at) ON o.k = r.k GROUP BY rate""",
    "in_time": """SELECT window.start, sum(rate) AS rates FROM (SELECT o.at, rate FROM orders o
        ASOF JOIN rates r MATCH_CONDITION (o.at >= r.at) ON o.k = r.k) GROUP BY window(at, '10 seconds')""",
    "before_itself": """SELECT a.id, b.id AS before FROM orders a
        LEFT ASOF JOIN orders b MATCH_CONDITION (a.at > b.at) ON a.k = b.k""",
    "taxed": "SELECT id, fee FROM orders o LEFT ASOF JOIN all_taxes t MATCH_CONDITION (o.at >= t.since) ON o.k = t.k",
}
FINAL = {
    "rated_done": VIEWS["rated"],
    "rated_or_not_done": VIEWS["rated_or_not"],
    "charged_done": VIEWS["charged"],
    "taxed_done": VIEWS["taxed"],
    "rated_in_time": VIEWS["in_time"],
    "taxed_in_time": f"""SELECT window.start, sum(fee) AS fees FROM ({VIEWS["taxed"].replace("id,", "id, at,")})
        GROUP BY window(at, '10 seconds')""",
}
"""These wait until their rows are complete."""


def within(spark: SparkSession) -> DataFrame:
    return ps.asof_join(
        spark.table("orders"),
        spark.table("rates"),
        on="k",
        left_time="at",
        right_time="at",
        tolerance="4 seconds",
        how="left",
    )


def soon(spark: SparkSession) -> DataFrame:
    fees = spark.table("all_fees").withColumnRenamed("deleted", "gone")
    return ps.asof_join(
        spark.table("orders"),
        fees,
        on=["k"],
        left_time="at",
        right_time="since",
        tolerance=timedelta(seconds=30),
        direction="forward",
        allow_exact_matches=False,
    )


class AsOfBench(Bench):
    """With views in Python."""

    def declared(self, options: Mapping[str, Any]) -> Pipeline:
        made = super().declared(options)
        done = ViewOptions(emit="final")
        more = [View("within", Function(within)), View("soon", Function(soon)), View("soon_done", Function(soon), done)]
        return replace(made, views=(*made.views, *more))


class Events:
    """Frames of all relations, whose times go on, some of them late."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._now = START
        self._id = 0
        self._offers: list[dict[str, Any]] = []

    def frame(self) -> dict[str, list[Any]]:
        self._now += timedelta(seconds=self._random.choice([0, 1, 4, 12]))
        made = {
            "orders": self._order,
            "rates": self._rate,
            "fees": self._fee,
            "taxes": self._fee,
            "offers": self._offer,
        }
        found = {name: [make() for _ in range(self._random.randint(0, 3))] for name, make in made.items()}
        return {name: rows for name, rows in found.items() if rows} or {"orders": [self._order()]}

    def _at(self) -> datetime | None:
        late = self._random.choice([0, 0, 1, 2, 6, 15, 40])
        return None if self._random.random() < 0.05 else self._now - timedelta(seconds=late)

    def _key(self) -> int | None:
        return self._random.choice([1, 1, 2, 3, None])

    def _order(self) -> dict[str, Any]:
        self._id += self._random.randint(0, 4) > 0
        return {"id": self._id, "k": self._key(), "n": self._random.randint(0, 9), "at": self._at()}

    def _rate(self) -> dict[str, Any]:
        return {"k": self._key(), "rate": self._random.randint(0, 9), "at": self._at()}

    def _fee(self) -> Any:
        key, since = self._key() or 4, self._at()
        if self._random.random() < 0.3:
            return Record({"k": key, "since": since}, deleted=True)
        return {"k": key, "fee": self._random.randint(0, 9), "since": since}

    def _offer(self) -> Any:
        if self._offers and self._random.random() < 0.4:
            return Record(self._offers.pop(self._random.randrange(len(self._offers))), deleted=True)
        self._offers.append({"k": self._key(), "price": self._random.randint(0, 3), "at": self._at()})
        return self._offers[-1]

    def punctuation(self) -> datetime:
        return self._now + timedelta(seconds=self._random.randint(-10, 5))


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(30 if SOAK else 1))
def test_as_of_joins_equal_batch(spark: SparkSession, tmp_path: Any, seed: int) -> None:
    random = Random(seed)
    sql = DECLARED + "".join(f"CREATE VIEW {name} AS {query};\n" for name, query in VIEWS.items())
    sql += "".join(f"CREATE VIEW {name} WITH (emit = 'final') AS {query};\n" for name, query in FINAL.items())
    events, shop = Events(random), AsOfBench(spark, tmp_path, sql, max_records_per_batch=random.choice([1, 6]))
    for chapter in range(3):
        if chapter:
            shop.start(max_records_per_batch=random.choice([1, 10, 100]))
        for _ in range(4):
            shop.append(events.frame())
            if random.random() < 0.3:
                shop.log.punctuate("rates", events.punctuation(), scope=random.choice(["", "test", "another"]))
        shop.drain()
        shop.check()
    assert shop.checked == len(shop.batches) > 0
    for name in (*FINAL, "soon_done"):  # what is final comes once, and stays
        shown = list(shop.log.read(shop.ready.lineage.topic(name)))
        assert shown and not any(entry.deleted or entry.replaces is not None for entry in shown), name
    shop.log.close()


@pytest.mark.spark
def test_explain_says_what_is_kept_how_long(spark: SparkSession) -> None:
    names = ("rated_or_not", "charged", "priced", "charged_now")
    pipeline = pipeline_of(DECLARED + "".join(f"CREATE VIEW {name} AS {VIEWS[name]};" for name in names), name="shop")
    plan = compiled(spark, pipeline)
    assert_golden(
        "engine/asof-explained", plan_text(explained(pipeline, plan, Query(spark, plan.graph, Tuning()).layout))
    )


@pytest.mark.spark
def test_explain_says_that_a_history_without_a_watermark_frees_nothing_by_itself(spark: SparkSession) -> None:
    declared = DECLARED.replace("history = 'all_fees', watermark = '20 seconds'", "history = 'all_fees'")
    pipeline = pipeline_of(f"{declared}CREATE VIEW charged AS {VIEWS['charged']};", name="shop")
    plan = compiled(spark, pipeline)
    said = plan_text(explained(pipeline, plan, Query(spark, plan.graph, Tuning()).layout))
    assert "every row of orders until a punctuation of all_fees has passed it" in said
    assert "the state of #2 is unbounded: it grows with all_fees and orders" in said


@pytest.mark.spark
def test_rows_are_freed_when_the_watermark_of_the_versions_has_passed_them(
    bench: Callable[..., Bench],
) -> None:
    views = f"CREATE VIEW rated AS {VIEWS['rated_or_not']}; CREATE VIEW done WITH (emit = 'final') AS {VIEWS['rated']};"
    shop = bench(DECLARED + views)
    shop.append({"rates": [{"k": 1, "rate": 1, "at": START}]})
    shop.drain()
    sizes = []
    for minute in range(1, 4):
        at = START + timedelta(minutes=minute)
        shop.append({"orders": [{"id": i, "k": 1, "n": 0, "at": at} for i in range(2_000)]})
        shop.drain()
        full = kept_bytes(shop)
        shop.append({"rates": [{"k": 1, "rate": minute, "at": at + timedelta(seconds=30)}]})
        shop.drain()
        sizes.append((full, kept_bytes(shop)))
    shop.check(every=100)
    assert all(full > 10 * freed for full, freed in sizes), sizes
    assert sizes[2][1] < sizes[0][1] + 1_000, sizes


def kept_bytes(shop: Bench) -> int:
    """What the pages of the newest state hold."""
    state = (
        shop.spark.read.format("statestore").option("stateVarName", "pages").load(str(shop.ready.lineage.checkpoint))
    )
    return int(state.selectExpr("sum(length(user_map_value.value)) AS n").collect()[0].n or 0)


@pytest.mark.spark
def test_an_as_of_join_in_plain_spark_gives_the_same(spark: SparkSession) -> None:
    sales = spark.createDataFrame([(1, "ny", 5), (2, "ny", 9), (3, "ca", 9)], "id INT, state STRING, at INT")
    rates = spark.createDataFrame([("ny", 4, 8), ("ny", 7, 9), ("ca", 10, 5)], "state STRING, at INT, rate INT")
    found = ps.asof_join(sales, rates, on="state", left_time="at", right_time="at", how="left").orderBy("id")
    assert found.columns == ["id", "state", "at", "rate"]
    assert [tuple(row) for row in found.collect()] == [(1, "ny", 5, 8), (2, "ny", 9, 9), (3, "ca", 9, None)]
    strict = ps.asof_join(sales, rates, on="state", left_time="at", right_time="at", direction="forward")
    assert [tuple(row) for row in strict.orderBy("id").collect()] == [(1, "ny", 5, 9), (3, "ca", 9, 5)]


@pytest.mark.spark
def test_columns_without_an_order_settle_no_ties(spark: SparkSession) -> None:
    """Wherever in a column's type they are."""
    values = [
        "named_struct('m', map(1, n)) AS a",
        "array(map(1, n)) AS b",
        "array(parse_json('1')) AS c",
        "make_interval(n) AS d",
        "array(named_struct('i', make_interval(n))) AS e",
        "st_geomfromwkb(X'0101000000000000000000F03F0000000000000040') AS f",
    ]
    rates = spark.sql("FROM VALUES (1, 4, 8), (1, 4, 9) AS r(k, at, n)").selectExpr(*values, "*")
    sales = spark.createDataFrame([(1, 5)], "k INT, at INT")
    found = ps.asof_join(sales, rates, on="k", left_time="at", right_time="at")
    assert found.select("n", "a.m", "b").collect() == [(9, {1: 9}, [{1: 9}])]
    once = ps.deduplicate(rates.withColumn("at", sf.timestamp_seconds("at")), "k", within="1 hour", time="at")
    assert once.select("n", "a.m", "b").collect() == [(8, {1: 8}, [{1: 8}])]


def at(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


ORDERS = [(number, 1 + number % 3, number, at(number)) for number in range(36)]
RATES = [(1 + number % 3, number, at(4 * number)) for number in range(8)]
FEES = [
    (1, 5, at(0), False),
    (1, None, at(15), True),
    (1, 7, at(24), False),
    (2, 9, at(10), False),
    (2, 3, at(10), False),  # of the same time: it stands later in the log
    (2, None, at(25), True),
    (2, 4, at(25), False),
    (3, None, at(0), True),
    (3, 6, at(5), False),
    (3, None, at(5), True),
]
MARKS = [(1, True, 7, at(3)), (1, False, 8, at(20)), (2, True, 9, at(20))]
"""Of a stream with a column `deleted` of its own: its rows are rows like any others."""
WAYS: dict[str, dict[str, Any]] = {
    "every": {"how": "left"},
    "charged": {},
    "soon": {"how": "left", "tolerance": "6 seconds"},
    "strict": {"allow_exact_matches": False},
    "later": {"how": "left", "direction": "forward"},
    "soon_after": {"direction": "forward", "tolerance": timedelta(seconds=9), "allow_exact_matches": False},
}


def charging(**way: Any) -> Callable[[SparkSession], DataFrame]:
    def view(spark: SparkSession) -> DataFrame:
        orders, fees = spark.table("orders"), spark.table("all_fees")
        joined = ps.asof_join(orders, fees, on="k", left_time="at", right_time="since", **way)
        return joined.select("id", "fee", "since", "deleted")

    return view


def marked(spark: SparkSession) -> DataFrame:
    return ps.asof_join(spark.table("orders"), spark.table("marks"), on="k", left_time="at", right_time="seen")


class Charging(Bench):
    def declared(self, options: Mapping[str, Any]) -> Pipeline:
        made = super().declared(options)
        more = [View(name, Function(charging(**way))) for name, way in WAYS.items()]
        return replace(made, views=(*made.views, *more, View("marked", Function(marked))))

    def compare(self, view: str, frame: DataFrame) -> None:
        self._same(view, "plain Spark", frame.toArrow(), self.content(view))


@pytest.mark.spark
def test_the_same_function_gives_in_plain_spark_what_the_view_holds(spark: SparkSession, tmp_path: Any) -> None:
    """Over the history of a table, with deletions and versions of the same time; over a stream with a column of the
    history's name; and the same SQL.
    """
    sql = {name: VIEWS[name] for name in ("rated", "rated_or_not", "rated_later", "rated_lower")}
    declared = f"{DECLARED} CREATE STREAM marks (k INT, deleted BOOLEAN, x INT, seen TIMESTAMP);"
    shop = Charging(spark, tmp_path, declared + "".join(f"CREATE VIEW {name} AS {sql[name]};" for name in sql))
    versions = [Record({"k": k, "fee": fee, "since": since}, deleted=deleted) for k, fee, since, deleted in FEES]
    rates = [{"k": k, "rate": rate, "at": at} for k, rate, at in RATES]
    marks = [{"k": k, "deleted": deleted, "x": x, "seen": seen} for k, deleted, x, seen in MARKS]
    shop.append({"fees": versions, "rates": rates, "marks": marks})
    shop.append({"orders": [{"id": id, "k": k, "n": n, "at": at} for id, k, n, at in ORDERS]})
    shop.drain()
    shop.check()
    plain = spark.newSession()
    numbered = [(*version, version[-1], place) for place, version in enumerate(FEES)]
    for name, rows, columns in [
        ("orders", ORDERS, "id INT, k INT, n INT, at TIMESTAMP"),
        ("rates", RATES, "k INT, rate INT, at TIMESTAMP"),
        ("all_fees", numbered, "k INT, fee INT, since TIMESTAMP, deleted BOOLEAN, _deleted BOOLEAN, _place LONG"),
        ("marks", MARKS, "k INT, deleted BOOLEAN, x INT, seen TIMESTAMP"),
    ]:
        plain.createDataFrame(rows, columns).createOrReplaceTempView(name)
    frames = {name: charging(**way)(plain) for name, way in WAYS.items()} | {"marked": marked(plain)}
    for name, frame in (frames | {name: plain.sql(query) for name, query in sql.items()}).items():
        assert shop.content(name), name
        shop.compare(name, frame)
    shop.log.close()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no-time", {"on": "state", "left_time": "at"}),
        ("column", {"on": "stat", "left_time": "at", "right_time": "at"}),
        ("how", {"left_time": "at", "right_time": "at", "how": "outer"}),
        ("direction", {"left_time": "at", "right_time": "at", "direction": "nearest"}),
        ("tolerance", {"left_time": "at", "right_time": "at", "tolerance": timedelta(seconds=-1)}),
        ("word", {"left_time": "at", "right_time": "at", "tolerence": "5 seconds"}),
    ],
)
def test_an_as_of_join_is_refused(spark: SparkSession, name: str, words: dict[str, Any]) -> None:
    rows = spark.createDataFrame([("ny", 4)], "state STRING, at INT")
    with refused(f"engine/asof-{name}"):
        ps.asof_join(rows, rows, **words)


def test_what_needs_spark_is_there_when_it_is_asked_for() -> None:
    assert callable(ps.asof_join)
    with pytest.raises(AttributeError, match="asof_joint"):
        _ = ps.asof_joint  # type: ignore[attr-defined]
