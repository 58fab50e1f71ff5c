"""Options of a pipeline, and those of the command, take effect."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.app.pipelines import Setting, opened
from penstock.log import Log
from penstock.views import ViewReader
from tests.texts import assert_golden

OPTIONS = """\
SET ansi = true;
SET time_zone = 'Asia/Tokyo';
SET shuffle_partitions = 3;
SET memory = '700m';
SET max_records_per_batch = 2;
SET spark.sql.maxPlanStringLength = 5000;
"""
RELATIONS = """\
CREATE STREAM events (at TIMESTAMP, text STRING);
CREATE VIEW hours AS SELECT text, hour(at) AS hour FROM events;
CREATE VIEW counts AS SELECT text, count(*) AS n FROM events GROUP BY text;
"""
SETTINGS = (
    "spark.sql.ansi.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.shuffle.partitions",
    "spark.driver.memory",
    "spark.sql.maxPlanStringLength",
)
EVENING = datetime(2024, 1, 31, 20, tzinfo=UTC)
PYTHON = f"""\
import json, pathlib
import penstock as ps

@ps.view
def settings(spark):
    seen = {{name: spark.conf.get(name) for name in {SETTINGS!r}}}
    seen["heap"] = spark._jvm.java.lang.Runtime.getRuntime().maxMemory() >> 20
    pathlib.Path(__file__).with_name("seen.json").write_text(json.dumps(seen))
    return spark.table("events").where("text = 'x'")
"""


def made(folder: Path, **files: str) -> Path:
    folder.mkdir()
    for name, text in files.items():
        folder.joinpath(name.replace("_", ".")).write_text(text)
    return folder


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from penstock.cli import main; main()", "run", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def test_the_command_goes_before_the_pipeline(tmp_path: Path) -> None:
    shop = made(tmp_path / "shop", pipeline_sql=OPTIONS + RELATIONS)
    setting = Setting(conf={"spark.driver.memory": "900m", "spark.ui.enabled": "true"})
    conf = opened(shop, setting).conf()
    assert {name: conf[name] for name in (*SETTINGS, "spark.ui.enabled")} == {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.shuffle.partitions": "3",
        "spark.driver.memory": "900m",
        "spark.sql.maxPlanStringLength": "5000",
        "spark.ui.enabled": "true",
    }


@pytest.mark.spark
@pytest.mark.timeout(1800)  # Spark is started twice
def test_options_take_effect(tmp_path: Path) -> None:
    shop = made(tmp_path / "shop", pipeline_sql=OPTIONS + RELATIONS, pipeline_py=PYTHON)
    with Log.open(tmp_path / "log") as log:
        log.create_topic("events", "at TIMESTAMP, text STRING")
        for text in ("1", "2", "3"):
            log.append("events", [{"at": None, "text": text}, {"at": EVENING, "text": text}])
        done = run(shop, "--once", "--log", tmp_path / "log", "--conf", "spark.sql.maxPlanStringLength=6000")
        assert done.returncode == 0, done.stderr
        last = log.last("shop/1")
        assert last is not None
        assert last.note["batch"] == 2  # batches of two records each
    seen = json.loads((shop / "seen.json").read_text())
    assert [seen[name] for name in SETTINGS] == ["true", "Asia/Tokyo", "3", "700m", "6000"]
    assert 600 < seen["heap"] <= 700
    states = shop / ".penstock" / "lineages" / "1" / "checkpoint" / "state" / "0"
    assert sorted(path.name for path in states.glob("[0-9]*")) == ["0", "1", "2"]
    with ViewReader(shop / ".penstock" / "views.sqlite") as views:
        assert {row["hour"] for row in views.rows("hours")} == {None, 5}


@pytest.mark.spark
@pytest.mark.parametrize(("ansi", "code"), [("true", 1), ("false", 0)])
def test_a_cast_that_fails_stops_the_pipeline_where_ansi_is_true(tmp_path: Path, ansi: str, code: int) -> None:
    view = "CREATE VIEW numbers AS SELECT CAST(text AS INT) AS number FROM events;"
    shop = made(tmp_path / "shop", pipeline_sql=f"SET ansi = {ansi};\n{RELATIONS}{view}\n")
    with Log.open(shop / ".penstock" / "log") as log:
        log.create_topic("events", "at TIMESTAMP, text STRING")
        log.append("events", [{"text": "one"}])
    done = run(shop, "--once")
    assert done.returncode == code, done.stderr
    if code:
        assert_golden("app/ansi", "\n".join(done.stderr.splitlines()[-3:]))
    else:
        with ViewReader(shop / ".penstock" / "views.sqlite") as views:
            assert list(views.rows("numbers")) == [{"number": None}]
