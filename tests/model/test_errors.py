"""What is refused in SQL, with the text that the user reads: golden/model."""

from pathlib import Path

import pytest

from penstock.model import load_pipeline, pipeline_of
from tests.texts import refused

AT = "CREATE STREAM orders (id BIGINT, at TIMESTAMP)"
KEYED = "CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMP)"

REFUSED = {
    # Statements
    "statement-unknown": "DROP TABLE orders;",
    "statement-query": "SELECT 1;",
    "statement-replace": "CREATE OR REPLACE VIEW v AS SELECT 1;",
    "statement-if-not-exists": "CREATE TABLE IF NOT EXISTS t (a INT);",
    "statement-materialized": "CREATE MATERIALIZED VIEW v AS SELECT 1;",
    "statement-streaming": "CREATE STREAMING TABLE t (a INT);",
    "statement-temporary": "CREATE TEMPORARY VIEW v AS SELECT 1;",
    "statement-incomplete": "CREATE",
    "statement-table-as": "CREATE TABLE t AS SELECT 1;",
    "semicolon-missing": "SET ansi = true\nCREATE VIEW v AS SELECT 1;",
    "semicolon-missing-after-query": "CREATE VIEW v AS\n  SELECT 1\nCREATE VIEW w AS SELECT 2;",
    "string-not-ended": "CREATE VIEW v AS\n  SELECT 'a FROM t;\n",
    "comment-not-ended": "CREATE VIEW v AS /* a /* b */ SELECT 1;",
    # Names
    "name-missing": "CREATE STREAM (id INT);",
    "name-of-two-parts": "CREATE STREAM shop.orders (id INT);",
    "name-unusable": "CREATE VIEW `my view` AS SELECT 1;",
    "name-of-the-store": "CREATE VIEW SQLite_things AS SELECT 1;",
    "name-of-ours": "CREATE VIEW _penstock WITH (key = 'a') AS SELECT 1 AS a;",
    "name-twice": f"{AT};\nCREATE VIEW Orders AS SELECT 1;",
    # Columns
    "columns-missing": "CREATE STREAM orders;",
    "column-type-missing": "CREATE STREAM orders (id, at TIMESTAMP);",
    "column-type-unknown": "CREATE STREAM orders (id BIGNT);",
    "column-type-unknown-inside": "CREATE STREAM orders (tags ARRAY<STRNG>);",
    "column-type-not-ended": "CREATE STREAM orders (tags ARRAY<STRING;",
    "column-without-name": "CREATE STREAM orders (`` INT);",
    "column-twice": "CREATE STREAM orders (id INT,\n  ID INT);",
    "column-hidden": "CREATE STREAM orders (_offset BIGINT);",
    "column-more": "CREATE STREAM orders (id INT COMMENT 'the number');",
    "column-collated": "CREATE TABLE t (name STRING COLLATE UNICODE_CI PRIMARY KEY);",
    "columns-not-ended": "CREATE STREAM orders (id INT",
    # Keys
    "key-of-a-stream": "CREATE STREAM orders (id INT PRIMARY KEY);",
    "key-unknown": "CREATE TABLE t (id INT, PRIMARY KEY (idd));",
    "key-twice": "CREATE TABLE t (id INT PRIMARY KEY, PRIMARY KEY (id));",
    "key-without-columns": "CREATE TABLE t (PRIMARY KEY (id));",
    "key-column-twice": "CREATE TABLE t (id INT, PRIMARY KEY (id, ID));",
    "key-of-maps": "CREATE TABLE t (id STRUCT<a: MAP<INT, INT>> PRIMARY KEY);",
    # Views
    "view-columns": "CREATE VIEW v (a, b) AS SELECT 1, 2;",
    "view-without-query": "CREATE VIEW v AS;",
    "view-with-statement": "CREATE VIEW v AS INSERT INTO t VALUES (1);",
    "view-store": "CREATE VIEW v WITH (store = 'tabel') AS SELECT 1;",
    "view-key": "CREATE VIEW v WITH (key = 'a b') AS SELECT 1;",
    "view-key-twice": "CREATE VIEW v WITH (key = 'a, A') AS SELECT 1;",
    "view-partition-twice": "CREATE VIEW v WITH (store = 'files', partition_by = 'day, Day') AS SELECT 1;",
    "view-partition-of-no-files": "CREATE VIEW v WITH (store = 'topic', partition_by = 'day') AS SELECT 1;",
    "view-index": "CREATE VIEW v WITH (index = 'city hour') AS SELECT 1;",
    "view-index-empty": "CREATE VIEW v WITH (index = 'city; ') AS SELECT 1;",
    "view-index-twice": "CREATE VIEW v WITH (index = 'city; hour, Hour') AS SELECT 1;",
    "view-index-of-a-topic": "CREATE VIEW v WITH (store = 'topic', index = 'city') AS SELECT 1;",
    "store-address": "SET store = 'postgresqk://ann:hunter2@db/views';",
    "store-address-port": "SET store = 'postgresql://ann:hunter2@db:port/views';",
    "store-address-nowhere": "SET store = 'redis://:hunter2@/0';",
    "store-twice": "SET store = 'postgresql://db/views';\nSET store = 'postgresql://ann:p@ss@db/views';",
    "webhook-address": "CREATE VIEW v WITH (webhook = 'ftp://ann:hunter2@host', webhook_secrets = 's') AS SELECT 1;",
    "webhook-without-secrets": "CREATE VIEW v WITH (webhook = 'https://host/') AS SELECT 1;",
    "webhook-secrets-alone": "CREATE VIEW v WITH (webhook_secrets = 's') AS SELECT 1;",
    "webhook-secret-itself": "CREATE VIEW v\n"
    "  WITH (webhook = 'https://host/', webhook_secrets = 'whsec_aHVudGVy+') AS SELECT 1;",
    "webhook-attempts": "CREATE VIEW v\n"
    "  WITH (webhook = 'https://host/', webhook_secrets = 's', webhook_attempts = 0) AS SELECT 1;",
    "webhook-of-nothing": "CREATE VIEW v\n"
    "  WITH (store = 'none', webhook = 'https://host/', webhook_secrets = 's') AS SELECT 1;",
    "email-letters": "CREATE VIEW v WITH (email = 'jürg@example.org') AS SELECT 1;",
    "email-mailbox": "CREATE VIEW v WITH (email = 'ann@example.org; bob') AS SELECT 1;",
    "email-without-server": "CREATE VIEW v WITH (email = 'ann@example.org') AS SELECT 1;",
    "email-every": "SET smtp = 'smtp://mail';\n"
    "CREATE VIEW v WITH (email = 'ann@example.org', email_every = '-1 second') AS SELECT 1;",
    "smtp-address": "SET smtp = 'http://ann:hunter2@mail';",
    "smtp-words": "SET smtp = 'smtp://ann:hunter2@mail?starttls=sometimes';",
    "kafka-address": "CREATE VIEW v WITH (kafka = 'kafka://ann:hunter2@host:9092/topic') AS SELECT 1;",
    "kafka-topic": "CREATE VIEW v WITH (kafka = 'kafka://host:9092/') AS SELECT 1;",
    "view-of-files-hidden": "CREATE VIEW _v WITH (store = 'files') AS SELECT 1;",
    # Options
    "option-of-a-view-unknown": "CREATE VIEW v WITH (stor = 'none') AS SELECT 1;",
    "option-of-a-pipeline-unknown": "SET anis = true;",
    "option-of-another": "CREATE TABLE t (id INT) WITH (allowed_lateness = '1 second');",
    "option-key": "CREATE TABLE t (id INT) WITH (key = 'id');",
    "option-twice": f"{AT} WITH (partitions = 1, Partitions = 2);",
    "option-set-twice": "SET ansi = true;\nSET spark.sql.ansi.enabled = true;",
    "retain-of-a-table": "CREATE TABLE t (id INT PRIMARY KEY) WITH (retain = '7 days');",
    "retain-without-event-time": f"{AT} WITH (retain = '7 days');",
    "retain-negative": f"{AT} WITH (event_time = 'at', retain = '-7 days');",
    "view-emit": "CREATE VIEW v WITH (emit = 'finally') AS SELECT 1;",
    "view-late": "CREATE VIEW v WITH (store = 'topic', late = 'ignore') AS SELECT 1;",
    "view-late-alert": "CREATE VIEW v WITH (late_alert = 5) AS SELECT 1;",
    "view-late-alert-of-all": "CREATE VIEW v WITH (late_alert = '100 %') AS SELECT 1;",
    "view-lateness-no-duration": "CREATE VIEW v WITH (late = 'correct', allowed_lateness = 5) AS SELECT 1;",
    "view-lateness-without-correct": "CREATE VIEW v WITH (late = 'drop', allowed_lateness = '1 hour') AS SELECT 1;",
    "view-correct-without-lateness": "CREATE VIEW v WITH (emit = 'final', late = 'correct') AS SELECT 1;",
    "view-correct-for-no-time": "CREATE VIEW v WITH (allowed_lateness = '0 seconds', late = 'correct') AS SELECT 1;",
    "view-option-of-a-stream": f"{AT} WITH (event_time = 'at', late = 'drop');",
    "history-without-key": "CREATE TABLE t (id INT, at TIMESTAMP) WITH (event_time = 'at', history = 'versions');",
    "history-without-event-time": "CREATE TABLE t (id INT PRIMARY KEY) WITH (history = 'versions');",
    "history-without-a-name": f"{KEYED} WITH (event_time = 'at', history = 'all versions');",
    "history-of-its-own-name": f"{KEYED} WITH (event_time = 'at', history = 'T');",
    "history-with-a-column-of-its-name": "CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMP, Deleted STRING)\n"
    "  WITH (event_time = 'at', history = 'versions');",
    "watermark-without-history": f"{KEYED} WITH (event_time = 'at', watermark = '1 hour');",
    "option-without-value": f"{AT} WITH (event_time);",
    "value-not-quoted": f"{AT} WITH (event_time = at);",
    "value-call": f"{AT} WITH (event_time = greatest(a, b));",
    "value-interval": f"{AT} WITH (event_time = 'at', watermark = INTERVAL 10 SECONDS);",
    "value-missing": f"{AT} WITH (event_time = );",
    "value-no-duration": f"{AT} WITH (event_time = 'at', watermark = '10 sekonds');",
    "value-no-unit": f"{AT} WITH (event_time = 'at', watermark = 10);",
    "value-month": f"{AT} WITH (event_time = 'at', watermark = '1 month');",
    "value-no-number": f"{AT} WITH (partitions = 'many');",
    "value-out-of-range": f"{AT} WITH (partitions = 5000);",
    "value-no-truth": "SET ansi = 'maybe';",
    "value-no-time-zone": "SET time_zone = 'Europe/Berln';",
    "value-no-memory": "SET memory = '4 GB';",
    "value-no-topic": f"{AT} WITH (topic = 'a/b');",
    "event-time-unknown": f"{AT} WITH (event_time = 'att');",
    "event-time-of-another-type": f"{AT} WITH (event_time = 'id');",
    "watermark-without-event-time": f"{AT} WITH (watermark = '10 seconds');",
    "watermark-by-nobody": f"{AT} WITH (event_time = 'at', watermark = '10 seconds', watermark_by = 'partitions');",
    "watermark-by-without-watermark": f"{AT} WITH (event_time = 'at', watermark_by = 'partition');",
    "watermark-by-without-event-time": f"{AT} WITH (watermark_by = 'producer');",
    "idle-without-event-time": f"{AT} WITH (idle = '1 minute');",
    "idle-for-no-time": f"{AT} WITH (event_time = 'at', idle = '0 seconds');",
    "plausible-too-long": f"{AT} WITH (event_time = 'at', plausible = '4000000 days');",
    "corrected-too-few": f"{AT} WITH (event_time = corrected(at, at));",
    "corrected-without-unit": f"{AT} WITH (event_time = corrected(at, at, at, 5));",
    "corrected-unknown-column": f"{AT} WITH (event_time = corrected(at, sent, at));",
    "corrected-other-types": "CREATE STREAM s (a TIMESTAMP, b TIMESTAMP_NTZ) WITH (event_time = 'corrected(a, b, a)');",
    "corrected-name-taken": f"{AT} WITH (event_time = corrected(at, at, at) AS AT);",
    "corrected-not-ended": f"{AT} WITH (event_time = corrected(at, at, at;",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_mistake_is_shown_where_it_stands(name: str) -> None:
    with refused(f"model/{name}"):
        pipeline_of(REFUSED[name])


def test_the_place_names_the_file_as_the_user_named_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shop").mkdir()
    text = "-- orders\nCREATE STREAM orders (id BIGINT, at TIMESTAMP)\n  WITH (wattermark = '10 seconds')\n"
    Path("shop/pipeline.sql").write_text(text)
    with refused("model/option-of-a-stream-unknown"):
        load_pipeline(Path("shop"))


def test_of_a_very_long_line_the_part_around_the_mistake_is_shown() -> None:
    columns = ", ".join(f"column_{number} INT" for number in range(100))
    with refused("model/line-very-long"):
        pipeline_of(f"CREATE STREAM s ({columns}, at TIMESTMP, {columns});")


def test_a_tab_does_not_move_the_mark() -> None:
    with refused("model/line-with-tabs"):
        pipeline_of("CREATE STREAM s (\n\tid\tBIGNT);")


@pytest.mark.parametrize("what", ["relation", "view"])
def test_a_name_that_was_not_declared_is_refused(what: str) -> None:
    pipeline = pipeline_of(f"{AT};\nCREATE VIEW spend AS SELECT 1;")
    with refused(f"model/{what}-unknown"):
        getattr(pipeline, what)({"relation": "order", "view": "spent"}[what])
