"""The text of a pipeline is canonical: it can be read back, and it is the same wherever it is written."""

import subprocess
import sys
from pathlib import Path
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from penstock.model import Pipeline, Sql, declaration_text, load_pipeline, pipeline_of, spot_in
from tests.model.strategies import PIECES, pipelines
from tests.texts import assert_golden

SHOP = """
SET trigger_interval = '1 second';
SET spark.sql.caseSensitive = false;
SET ansi = true;
SET memory = '4g';
CREATE VIEW spend WITH (store = 'topic', key = 'city, `the hour`') AS
  SELECT city, -- where
    sum(amount)   AS spend FROM orders GROUP BY city;
CREATE VIEW hourly WITH (allowed_lateness = '90 minutes', late = 'correct', late_alert = '1.5 %', emit = 'final') AS
  SELECT window.start, count(*) AS n FROM orders GROUP BY window(at, '1 hour');
CREATE VIEW plain WITH (emit = 'changes', late = 'keep', retain = '7 days') AS SELECT city FROM customers;
CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING) WITH (topic = 'shop.customers');
CREATE STREAM Orders (id BIGINT, `the amount` DECIMAL(10, 2), at TIMESTAMP NOT NULL)
  WITH (watermark = '90 seconds', event_time = 'at', partitions = 1);
CREATE STREAM readings (`made at` TIMESTAMP, sent TIMESTAMP, got TIMESTAMP)
  WITH (plausible = '2 hours', retain = '90 minutes', idle = '1 minute', watermark_by = 'producer',
        event_time = corrected(`MADE AT`, sent, got, '1 hour') AS at);
"""


def content(pipeline: Pipeline) -> tuple[object, ...]:
    """What was declared, whatever the order."""
    by_name = {each.name: each for each in (*pipeline.relations, *pipeline.views)}
    return by_name, pipeline.options


@given(pipelines())
def test_what_was_printed_is_read_back(pipeline: Pipeline) -> None:
    assert content(pipeline_of(declaration_text(pipeline))) == content(pipeline)


@given(pipelines(), st.randoms(use_true_random=False))
def test_the_order_of_declarations_does_not_count(pipeline: Pipeline, random: Random) -> None:
    shuffled = Pipeline(
        pipeline.name,
        pipeline.folder,
        tuple(random.sample(pipeline.relations, len(pipeline.relations))),
        tuple(random.sample(pipeline.views, len(pipeline.views))),
        pipeline.options,
    )
    assert declaration_text(shuffled) == declaration_text(pipeline)


@given(pipelines())
def test_what_has_the_same_meaning_has_the_same_text(pipeline: Pipeline) -> None:
    text = declaration_text(pipeline, meaning_only=True)
    assert declaration_text(pipeline_of(text), meaning_only=True) == text


def test_the_text_of_a_shop() -> None:
    assert_golden("model/text", declaration_text(pipeline_of(SHOP)))


def test_the_meaning_of_a_shop() -> None:
    assert_golden("model/text-meaning", declaration_text(pipeline_of(SHOP), meaning_only=True))


def test_white_space_and_comments_in_a_query_have_no_meaning() -> None:
    one = pipeline_of("CREATE VIEW v AS SELECT a -- b\n , 'c  d' FROM e")
    other = pipeline_of("CREATE VIEW v AS\n\tSELECT a /* why */ , 'c  d'\n\tFROM e;")
    assert declaration_text(one, meaning_only=True) == declaration_text(other, meaning_only=True)
    assert declaration_text(one) != declaration_text(other)


def test_a_view_in_python_is_told_by_its_name(tmp_path: Path) -> None:
    tmp_path.joinpath("a.py").write_text("import penstock as ps\n\n@ps.view(name='v')\ndef f(spark): ...\n")
    assert declaration_text(load_pipeline(tmp_path)) == "CREATE VIEW v AS\nPYTHON FUNCTION f;\n"


def test_another_process_writes_the_same_text() -> None:
    program = f"from penstock.model import *\nprint(declaration_text(pipeline_of({SHOP!r})), end='')"
    environment = {"PYTHONHASHSEED": "7", "PATH": ""}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == declaration_text(pipeline_of(SHOP))


@given(st.lists(st.sampled_from(PIECES)), st.lists(st.sampled_from(PIECES)), st.data())
def test_every_place_in_a_query_is_found_in_the_file(before: list[str], inside: list[str], data: st.DataObject) -> None:
    text = f"CREATE VIEW w AS SELECT {' '.join(before)} end; /* \n */ CREATE VIEW v AS SELECT {' '.join(inside)} end ;"
    query = pipeline_of(text).view("v").query
    assert isinstance(query, Sql)
    at = data.draw(st.integers(0, len(query.text) - 1))
    start = query.text.rfind("\n", 0, at) + 1
    spot = spot_in(query, query.text.count("\n", 0, at) + 1, at - start + 1)
    assert text.split("\n")[spot.line - 1][spot.column - 1 : spot.column] == query.text[at].strip("\n")
    assert spot.text[spot.column - 1 : spot.column] == query.text[at].strip("\n")
