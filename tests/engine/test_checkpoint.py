"""A checkpoint that does not fit its log is refused, or its batches run again and change nothing."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.engine.checkpoint import STATE_FORMAT, check_fits
from penstock.engine.compile import compiled
from penstock.engine.lineage import Lineage, begun, newest
from penstock.engine.run import prepared
from penstock.errors import EngineError
from penstock.log import Log
from penstock.model import pipeline_of
from tests.engine.conftest import Bench
from tests.texts import assert_golden, refused

ORDERS = """
    CREATE STREAM orders (id BIGINT, city STRING);
    CREATE VIEW cities AS SELECT city, count(*) AS n FROM orders GROUP BY city;
"""


def checkpoint(bench: Bench) -> Path:
    return bench.ready.lineage.checkpoint


def append(bench: Bench, *ids: int) -> None:
    """A frame for each of the records."""
    for number in ids:
        bench.append({"orders": [{"id": number, "city": "Bern" if number % 2 else "Basel"}]})


def restarted(bench: Bench) -> None:
    bench.start(max_records_per_batch=1)


@pytest.mark.parametrize(("begun", "later"), [("1", "2"), ("2", "1")])
def test_a_checkpoint_goes_on_in_the_format_in_which_it_was_begun(
    bench: Callable[..., Bench], begun: str, later: str
) -> None:
    one = bench(ORDERS, max_records_per_batch=1)
    for version in (begun, later, later):
        one.spark.conf.set(STATE_FORMAT, version)
        append(one, 0, 1, 2)
        one.drain()
        restarted(one)
    one.check()
    assert {row["city"]: row["n"] for row in one.content("cities")} == {"Basel": 6, "Bern": 3}
    assert {path.read_text()[:2] for path in (checkpoint(one) / "commits").glob("[0-9]*")} == {f"v{begun}"}


@pytest.mark.spark
def test_what_may_stand_in_any_order_stands_in_one_that_is_the_same_in_every_process(spark: SparkSession) -> None:
    """Catalyst takes the order of hash codes, some of which are addresses: a run would not know its own views."""
    query = """SELECT id, city FROM orders
        WHERE (id = 1 OR city IS NULL OR length(city) > 2) AND (id = 2 OR city < 'b' OR length(city) > 3)
          AND (id = 3 OR city > 'c' OR length(city) > 4) AND (id = 4 OR city <> 'd' OR length(city) > 5)
          AND id + length(city) * 3 + ascii(city) = length(url_encode(city)) AND url_decode(city) = url_encode(city)"""
    plan = compiled(spark, pipeline_of(f"{ORDERS} CREATE VIEW some AS {query};", name="shop"))
    assert_golden("engine/plan-in-order", plan.plans["some"])


@pytest.mark.spark
@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("id + 1 AS s", "try_add(id, 1) AS s", id="mode"),
        pytest.param(
            ", ".join(f"id + {n} AS c{n}" for n in range(40)),
            ", ".join(f"id + {n % 39} AS c{n}" for n in range(40)),
            id="columns",
        ),
        pytest.param(
            f"id IN ({', '.join(map(str, range(60)))}) AS s",
            f"id IN ({', '.join(map(str, range(1, 61)))}) AS s",
            id="list",
        ),
    ],
)
def test_queries_that_differ_have_texts_that_differ(spark: SparkSession, one: str, other: str) -> None:
    """A view that is a function of Python has no other text; Spark's own leaves out what is long, and more."""
    sql = f"{ORDERS} CREATE VIEW one AS SELECT {one} FROM orders; CREATE VIEW other AS SELECT {other} FROM orders;"
    plans = compiled(spark, pipeline_of(sql, name="shop")).plans
    assert plans["one"] != plans["other"]


@pytest.fixture
def ten(bench: Callable[..., Bench]) -> Bench:
    """Ten records read, a batch for each; `checkpoint.old` is the checkpoint after the first four."""
    made = bench(ORDERS, max_records_per_batch=1)
    append(made, 0, 1, 2, 3)
    made.drain()
    shutil.copytree(checkpoint(made), checkpoint(made).with_suffix(".old"))
    append(made, *range(4, 10))
    made.drain()
    return made


def go_back(bench: Bench) -> None:
    shutil.rmtree(checkpoint(bench))
    shutil.copytree(checkpoint(bench).with_suffix(".old"), checkpoint(bench))


def test_an_older_checkpoint_runs_its_batches_again_and_changes_nothing(ten: Bench) -> None:
    go_back(ten)
    append(ten, 10)
    restarted(ten)
    ten.drain()
    assert [(done.batch, done.repeated) for done in ten.batches[10:]] == [
        *((n, True) for n in range(4, 10)),
        (10, False),
    ]
    ten.check()


def test_a_checkpoint_that_is_gone_is_made_again(ten: Bench) -> None:
    shutil.rmtree(checkpoint(ten))
    restarted(ten)
    ten.drain()
    assert [done.repeated for done in ten.batches[10:]] == [True] * 10
    ten.check()


def test_an_older_checkpoint_that_reads_in_other_steps_is_refused(ten: Bench) -> None:
    go_back(ten)
    ten.start(max_records_per_batch=3)
    for _ in range(2):  # it does not become right by being tried again
        with refused("engine/checkpoint-other-frames"):
            ten.drain()
    ten.check()
    assert ten.checked == 10


def test_a_checkpoint_of_another_log_is_refused(ten: Bench, tmp_path: Path) -> None:
    with Log.open(tmp_path / "other") as other, pytest.raises(EngineError) as error:
        prepared(ten.spark, ten.pipeline, other, ten.home)
    told = str(error.value).replace(ten.log.identity, "ONE").replace(other.identity, "OTHER")
    assert_golden("engine/checkpoint-other-log", told)


@pytest.fixture
def older_log(bench: Callable[..., Bench], tmp_path: Path) -> Callable[[], tuple[Bench, Log]]:
    """A pipeline that has read twelve records, and its log as it was after six."""

    def made() -> tuple[Bench, Log]:
        one = bench(ORDERS, max_records_per_batch=1)
        append(one, *range(6))
        one.drain()
        shutil.copytree(one.log.folder, tmp_path / "older")
        append(one, *range(6, 12))
        one.drain()
        return one, Log.open(tmp_path / "older")

    return made


def test_a_checkpoint_beyond_the_end_of_the_log_is_refused(older_log: Callable[[], tuple[Bench, Log]]) -> None:
    one, log = older_log()
    with log, refused("engine/checkpoint-beyond-the-end"):
        prepared(one.spark, one.pipeline, log, one.home)


def test_a_log_that_has_lost_batches_is_noticed_though_it_has_grown_since(
    older_log: Callable[[], tuple[Bench, Log]],
) -> None:
    one, log = older_log()
    with log:
        log.append_all({"orders": [{"id": number, "city": "Genf"} for number in range(3)]})
        while log.mark().next_frame < one.log.mark().next_frame:
            log.append_all({"orders": [{"id": 0, "city": "Genf"}]})
        with refused("engine/checkpoint-lost-batches"):
            prepared(one.spark, one.pipeline, log, one.home)


def test_a_checkpoint_that_cannot_be_read_is_refused(ten: Bench) -> None:
    (checkpoint(ten) / "offsets" / "9").write_bytes(bytes(200))
    with pytest.raises(EngineError) as error:
        restarted(ten)
    assert (error.value.primary, "reset" in error.value.hint) == (
        'the checkpoint\'s file "offsets/9" cannot be read',
        True,
    )


# Lineages


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log.open(tmp_path / "log")


def test_a_lineage_is_there_with_its_fingerprint_or_not_at_all(log: Log, tmp_path: Path) -> None:
    unfinished = tmp_path / "home" / "lineages" / ".1.new"
    unfinished.mkdir(parents=True)
    (unfinished / "fingerprint.json").write_text("{")  # as a run that died left it
    assert newest(tmp_path / "home", "shop") is None
    made = begun(tmp_path / "home", log, "shop", {"log": "x"})
    assert (made.number, json.loads(made.fingerprint.read_text())) == (1, {"log": "x"})
    assert [path.name for path in made.folder.parent.iterdir()] == ["1"]


def test_a_lineage_whose_folder_was_lost_does_not_give_its_number_to_another(log: Log, tmp_path: Path) -> None:
    lost = begun(tmp_path / "home", log, "shop", {})
    log.append_all({}, producer=lost.producer, sequence=0, note={"batch": 0})
    shutil.rmtree(tmp_path / "home")
    assert begun(tmp_path / "home", log, "shop", {}).number == 2


def test_a_lineage_that_has_planned_nothing_fits_every_log(log: Log, tmp_path: Path) -> None:
    check_fits(Lineage("shop", 1, tmp_path), log)


# Changed pipelines

SHOP = """
    CREATE STREAM orders (id BIGINT, city STRING);
    CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING);
    CREATE VIEW cities AS SELECT city, count(*) AS n FROM orders GROUP BY city;
    CREATE VIEW homes AS SELECT city, count(*) AS n FROM customers GROUP BY city;
"""
CHANGED = {
    "a-view": SHOP.replace("SELECT city, count(*) AS n FROM orders", "SELECT city, max(id) AS n FROM orders"),
    "a-table": SHOP.replace(
        "city STRING);\n    CREATE VIEW", "city STRING) WITH (topic = 'clients');\n    CREATE VIEW"
    ),
    "views": SHOP.replace("VIEW homes", "VIEW houses"),
    "a-setting": "SET ansi = true;" + SHOP,
    "a-setting-of-spark": "SET 'spark.sql.caseSensitive' = 'true';" + SHOP,
    "how-a-view-is-kept": SHOP.replace("VIEW cities AS", "VIEW cities WITH (store = 'topic') AS"),
}


@pytest.fixture(scope="module")
def before(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Log, Path]:
    folder = tmp_path_factory.mktemp("changed")
    log = Log.open(folder / "log")
    prepared(spark.newSession(), pipeline_of(SHOP, name="shop"), log, folder / "home")
    return log, folder / "home"


@pytest.mark.parametrize("name", CHANGED)
def test_a_changed_pipeline_is_refused_by_the_name_of_what_changed(
    name: str, before: tuple[Log, Path], spark: SparkSession
) -> None:
    pipeline, session = pipeline_of(CHANGED[name], name="shop"), spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", str(pipeline.options.ansi).lower())
    with refused(f"engine/changed-{name}"):
        prepared(session, pipeline, *before)


def test_what_changes_no_answer_changes_no_pipeline(before: tuple[Log, Path], spark: SparkSession) -> None:
    same = "SET max_records_per_batch = 7; -- another size\n" + SHOP.replace("SELECT city,", "SELECT  city,")
    prepared(spark.newSession(), pipeline_of(same, name="shop"), *before)


def test_a_fingerprint_that_cannot_be_read_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = pipeline_of(SHOP, name="shop")
    with Log.open(tmp_path / "log") as log:
        made = prepared(spark.newSession(), pipeline, log, tmp_path / "home")
        made.lineage.fingerprint.write_text("{")
        with refused("engine/fingerprint-damaged"):
            prepared(spark.newSession(), pipeline, log, tmp_path / "home")
