"""Case files: read or refused with their line, played on the engine, their outcomes told."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from pyspark.sql import SparkSession

from penstock.app.testing import Case, Outcome, cases_in
from penstock.app.testing.bench import Ground
from penstock.app.testing.comparing import difference
from penstock.app.testing.how import QUICK, How
from penstock.app.testing.reports import json_lines, junit
from penstock.app.testing.running import Hall
from penstock.app.testing.values import Misfit, alike, cast, comparable
from penstock.cli.test import Teller, closing_line, failure_text
from penstock.errors import Spot
from penstock.schema import parse_schema, parse_type
from tests.texts import assert_golden, refused

Read = Callable[[str], list[Case]]
WHOLE = """\
case: a sum follows
tags: [sum]
pipeline: |
  CREATE TABLE t (k STRING, v DOUBLE);
  CREATE VIEW sums AS SELECT k, sum(v) AS v FROM t GROUP BY k;
options: {ansi: true}
steps:
  - feed: {t: [[1, a, 0.1], [1, on, ~]]}
    want: {sums: [[a, 0.1], [on, null]]}
  - restart: true
    feed: {t: [[-1, a, 0.1]]}
    changes: {sums: [[-1, a, 0.1]]}
"""


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """The cases of a YAML text, in a file of the current folder."""
    monkeypatch.chdir(tmp_path)

    def read_text(text: str) -> list[Case]:
        Path("cases.yaml").write_text(text)
        return cases_in([Path("cases.yaml")])

    return read_text


def test_a_case_is_read_with_the_lines_of_its_steps(read: Read) -> None:
    (case,) = read(WHOLE)
    assert (case.name, case.tags, case.options) == ("a sum follows", ("sum",), {"ansi": True})
    first, second = case.steps
    assert (first.number, first.spot.line, second.number, second.spot.line) == (1, 8, 2, 10)
    assert first.feed == {"t": ((1, ("a", Decimal("0.1"))), (1, ("on", None)))}
    assert second.restart and not second.crash
    assert second.changes == {"sums": ((-1, ("a", Decimal("0.1"))),)}


def test_json_lines_hold_one_case_in_each_line(tmp_path: Path) -> None:
    case = {"case": "x", "pipeline": "CREATE TABLE t (v INT);", "steps": [{"feed": {"t": [[1, 1.50]]}}]}
    (tmp_path / "a.jsonl").write_text(f"{json.dumps(case)}\n\n{json.dumps(case | {'case': 'y'})}\n")
    cases = cases_in([tmp_path])
    assert [(case.name, case.spot.line) for case in cases] == [("x", 1), ("y", 3)]


def test_a_step_has_watermarks_and_late_rows(read: Read) -> None:
    steps = "steps: [{watermark: {s: 2024-01-01}, late: {x: [[1], [1]], y: }}]"
    (case,) = read(f"case: x\npipeline: CREATE STREAM s (v INT);\n{steps}\n")
    (step,) = case.steps
    assert step.watermark == {"s": "2024-01-01"}
    assert step.late == {"x": ((1,), (1,)), "y": ()}
    assert step.views == ("x", "y")


MALFORMED = {
    "no-yaml": "case: x\n  pipeline: [",
    "key-twice": "case: x\ncase: y\n",
    "no-pipeline": "case: x\nsteps: []\n",
    "no-steps": "case: x\npipeline: y\n",
    "steps-and-error": "case: x\npipeline: y\nerror: z\nsteps: []\n",
    "unknown-key": "case: x\npipeline: y\nstep: []\n",
    "unknown-step-key": "case: x\npipeline: y\nsteps:\n  - feed: {}\n  - wants: {}\n",
    "no-weight": "case: x\npipeline: y\nsteps:\n  - feed:\n      t:\n        - [1, 5]\n        - [a, 5]\n",
    "weight-of-feed": "case: x\npipeline: y\nsteps:\n  - feed: {t: [[2, 5]]}\n",
    "row-no-list": "case: x\npipeline: y\nsteps:\n  - want: {v: [1]}\n",
    "want-no-map": "case: x\npipeline: y\nsteps:\n  - want: [1]\n",
    "restart-no-truth": "case: x\npipeline: y\nsteps:\n  - restart: maybe\n",
    "watermark-no-time": "case: x\npipeline: y\nsteps:\n  - watermark: {s: [1]}\n",
    "late-no-list": "case: x\npipeline: y\nsteps:\n  - late: {v: 1}\n",
    "no-map": "- 1\n- 2\n",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_case_is_refused_with_its_line(read: Read, name: str) -> None:
    with refused(f"testing/{name}"):
        read(MALFORMED[name])


def test_a_line_that_is_no_json_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cases.jsonl").write_text('{"case": "x"\n')
    with refused("testing/no-json"):
        cases_in([Path("cases.jsonl")])


def test_a_file_of_another_kind_is_refused() -> None:
    with refused("testing/no-case-file"):
        cases_in([Path("cases.txt")])


CASTS = [
    ("BIGINT", "7", 7),
    ("INT", Decimal("7.0"), 7),
    ("DOUBLE", "NaN", "NaN"),
    ("DOUBLE", Decimal("0.1"), 0.1),
    ("FLOAT", Decimal("0.1"), 0.10000000149011612),
    ("DECIMAL(5,2)", "1.005", Decimal("1.01")),
    ("DECIMAL(5,2)", 3, Decimal(3)),
    ("BOOLEAN", "yes", True),
    ("BOOLEAN", "0", False),
    ("STRING", 5, "5"),
    ("STRING", True, "true"),
    ("STRING", Decimal("1.50"), "1.50"),
    ("BINARY", "00ff", b"\x00\xff"),
    ("DATE", "2024-2-9", date(2024, 2, 9)),
    ("TIMESTAMP", "2024-01-01", datetime(2024, 1, 1, tzinfo=UTC)),
    ("TIMESTAMP", "2024-01-01T12:00:00.5+02:00", datetime(2024, 1, 1, 10, 0, 0, 500000, UTC)),
    ("TIMESTAMP", "2024-07-01 12:00:00 Europe/Rome", datetime(2024, 7, 1, 10, tzinfo=UTC)),
    ("TIMESTAMP_NTZ", "2024-01-01 12:00:00", datetime(2024, 1, 1, 12)),
    ("ARRAY<INT>", ["1", None], (1, None)),
    ("STRUCT<a: INT, b: STRING>", {"B": "x"}, (None, "x")),
    ("STRUCT<a: INT, b: STRING>", [1, "x"], (1, "x")),
    ("MAP<INT, STRING>", {"2": "b", "1": "a"}, ((1, "a"), (2, "b"))),
    ("MAP<INT, STRING>", [[1, "a"], [2, "b"]], ((1, "a"), (2, "b"))),
]


@pytest.mark.parametrize(("type_", "written", "meant"), CASTS)
def test_a_value_is_cast_to_the_type_of_its_column(type_: str, written: Any, meant: Any) -> None:
    assert comparable(cast(parse_type(type_), written)) == meant


@pytest.mark.parametrize(
    ("type_", "written"),
    [
        ("TINYINT", 128),
        ("INT", Decimal("1.5")),
        ("INT", True),
        ("DECIMAL(3,2)", 10),
        ("BOOLEAN", "perhaps"),
        ("TIMESTAMP", "2024-13-01"),
        ("TIMESTAMP", "2024-01-01 00:00:00 Nowhere/City"),
        ("BINARY", "xyz"),
        ("ARRAY<INT>", 1),
        ("STRUCT<a: INT>", {"b": 1}),
        ("STRUCT<a: INT>", [1, 2]),
        ("MAP<INT, INT>", [[1]]),
    ],
)
def test_a_value_that_is_none_of_the_type_is_refused(type_: str, written: Any) -> None:
    with pytest.raises(Misfit):
        cast(parse_type(type_), written)


def test_floating_point_numbers_are_alike_within_a_billionth() -> None:
    assert alike((1, (0.1 + 0.2,)), (1, (0.3,)))
    assert not alike((0.3,), (0.3000001,))
    assert not alike((float("inf"),), (1.0,))


def test_a_difference_shows_what_is_missing_and_what_is_too_much() -> None:
    schema = parse_schema("k STRING, v DOUBLE")
    want = Counter({("a", 0.3): 2, (None, 1.0): 1})
    found = Counter({("a", 0.1 + 0.2): 1, ("b", 2.5): 1, (None, 1.0): 1})
    assert difference("sums", want, found, schema) == [
        "sums: 1 missing, 1 too many",
        "     k  v",
        "  -  a  0.3",
        "  +  b  2.5",
    ]
    assert difference("sums", want, want, schema) == []


# On the engine


@pytest.fixture
def outcomes(spark: SparkSession, tmp_path: Path, read: Read) -> Callable[..., list[Outcome]]:
    def played(text: str, **how: Any) -> list[Outcome]:
        found: list[Outcome] = []
        cases = read(text)
        Hall(Ground(spark, QUICK), tmp_path, How(master="local[2]", **how)).play(cases, found.append)
        return sorted(found, key=lambda outcome: outcome.case.spot.line)

    return played


PIPELINE = """\
pipeline: |
  CREATE STREAM s (k STRING, v INT);
  CREATE TABLE t (id INT PRIMARY KEY, v INT);
  CREATE STREAM e (k STRING, at TIMESTAMP) WITH (event_time = 'at');
  CREATE VIEW sums AS SELECT k, sum(v) AS v FROM s GROUP BY k;
  CREATE VIEW hourly AS SELECT window.start, count(*) AS n FROM e GROUP BY window(at, '1 hour', '30 minutes');
"""
LATE_STEP = "{watermark: {e: 2024-01-01 02:00:00}}, {feed: {e: [[1, a, 2024-01-01 00:10:00]]}"
WRONG = {
    "an answer that is not so": "steps: [{feed: {s: [[1, a, 1], [1, b, 2]]}, want: {sums: [[a, 1], [b, 3]]}}]",
    "changes that are not so": "steps: [{feed: {s: [[1, a, 1]]}}, {feed: {s: [[1, a, 1]]}, changes: {sums: []}}]",
    "a row with too few values": "steps: [{feed: {s: [[1, a]]}}]",
    "a value that does not fit": "steps: [{feed: {s: [[1, a, x]]}}]",
    "a wanted value that does not fit": "steps: [{feed: {s: [[1, a, 1]]}, want: {sums: [[a, x]]}}]",
    "a row that leaves a stream": "steps: [{feed: {s: [[-1, a, 1]]}}]",
    "a relation that is not there": "steps: [{feed: {u: [[1, a, 1]]}}]",
    "a view that is not there": "steps: [{feed: {s: [[1, a, 1]]}, want: {sum: []}}]",
    "a pipeline that is not refused": "error: nonsense",
    "a watermark that is no time": "steps: [{watermark: {e: soon}}]",
    "a watermark of a table": "steps: [{watermark: {t: 2024-01-01}}]",
    "a watermark of a stream without time": "steps: [{watermark: {s: 2024-01-01}}]",
    "a watermark of nothing": "steps: [{watermark: {u: 2024-01-01}}]",
    "late rows that are not so": f"steps: [{LATE_STEP}, late: {{hourly: [[a, 2024-01-01 00:20:00]]}}}}]",
    "late rows that are forgotten": f"steps: [{LATE_STEP}, late: {{hourly: []}}}}]",
    "a late row that does not fit": f"steps: [{LATE_STEP}, late: {{hourly: [[a, soon]]}}}}]",
    "late rows of a view without windows": "steps: [{late: {sums: [[a, 2024-01-01]]}}]",
    "late rows of a view that is not there": "steps: [{late: {hour: []}}]",
}


def test_what_does_not_hold_is_told(outcomes: Callable[..., list[Outcome]]) -> None:
    found = outcomes("---\n".join(f"case: {name}\n{PIPELINE}{rest}\n" for name, rest in WRONG.items()))
    assert_golden("testing/wrong", "".join(map(failure_text, found)).strip())


def test_a_case_that_holds_passes_on_the_engine_and_in_batch(outcomes: Callable[..., list[Outcome]]) -> None:
    refusal = "case: refused\npipeline: CREATE VIEW v AS SELECT x FROM nowhere;\nerror: nowhere\n"
    assert [each.reason for each in outcomes(f"{WHOLE}---\n{refusal}")] == ["", ""]
    assert [each.reason for each in outcomes(WHOLE, batch=True)] == [""]


def test_batch_tells_what_no_engine_could_hold(outcomes: Callable[..., list[Outcome]]) -> None:
    name = "an answer that is not so"
    (outcome,) = outcomes(f"case: {name}\n{PIPELINE}{WRONG[name]}\n", batch=True)
    assert "want sums: 1 missing, 1 too many" in outcome.reason


TIMED = """\
case: what comes too late
pipeline: |
  CREATE STREAM a (k INT, d DATE, b BINARY, m MAP<STRING, ARRAY<BINARY>>, at TIMESTAMP) WITH (event_time = 'at');
  CREATE STREAM b (k DECIMAL(5,2), at TIMESTAMP_NTZ) WITH (event_time = 'at', watermark = '1 hour');
  CREATE VIEW both AS
    SELECT window.start AS start, count(*) AS n FROM a GROUP BY window(at, '1 hour')
    UNION ALL SELECT CAST(window.start AS TIMESTAMP), count(*) FROM b GROUP BY window(at, '1 hour');
  CREATE VIEW dropped WITH (late = 'drop') AS SELECT count(*) AS n FROM a GROUP BY window(at, '1 hour');
steps:
  - feed: {b: [[1, 1.5, 2024-01-01 12:00:00]]}
    watermark: {a: 2024-01-01 12:00:00}
    want: {both: [[2024-01-01 12:00:00, 1]]}
    late: {both: [], dropped: []}
  - restart: true
    feed:
      a:
        - [1, 1, 2024-02-29, 00ff, {x: [0a, null]}, 2024-01-01 11:59:59.999999]
        - [1, 2, null, null, null, 2024-01-01 12:00:00]
      b: [[1, 2.25, 2024-01-01 10:30:00]]
    changes: {both: [[1, 2024-01-01 12:00:00, 1]]}
    late:
      both: [[2.25, 2024-01-01 10:30:00], [1, 2024-02-29, 00ff, {x: [0a, null]}, 2024-01-01 11:59:59.999999]]
      dropped: []
  - late: {both: []}
"""


def test_late_rows_are_those_of_the_step_whatever_stream_they_are_from(
    outcomes: Callable[..., list[Outcome]],
) -> None:
    assert [each.reason for each in outcomes(TIMED)] == [""]
    assert [each.reason for each in outcomes(TIMED, batch=True)] == [""]


# Told

PASSED = Outcome(Case("one", Spot("a.yaml", 1, 1, ""), ""), "", 0.25)
FAILED = Outcome(Case("two & <three>", Spot("a.yaml", 9, 1, ""), ""), "step 1\n  a \x00 b", 1.5)


def test_outcomes_as_json_lines() -> None:
    assert [json.loads(line) for line in json_lines([PASSED, FAILED]).splitlines()] == [
        {"name": "one", "outcome": "passed", "reason": "", "seconds": 0.25, "file": "a.yaml"},
        {"name": "two & <three>", "outcome": "failed", "reason": "step 1\n  a \0 b", "seconds": 1.5, "file": "a.yaml"},
    ]


def test_outcomes_as_ci_systems_read_them() -> None:
    (suite,) = Xml.fromstring(junit([PASSED, FAILED]))
    assert (suite.attrib["name"], suite.attrib["tests"], suite.attrib["failures"]) == ("a.yaml", "2", "1")
    one, two = suite
    assert (one.attrib["name"], one.attrib["time"], list(one)) == ("one", "0.250", [])
    (failure,) = two
    assert (two.attrib["line"], failure.attrib["message"], failure.text) == ("9", "step 1", "step 1\n  a ? b")


def test_progress_is_a_line_for_each_file_and_on_a_terminal_one_line_that_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.cli.test._width", lambda: 20)
    told: dict[bool, list[str]] = {True: [], False: []}
    for live, lines in told.items():
        teller = Teller([PASSED.case, FAILED.case], lines.append, live=live)
        teller.take(PASSED)
        teller.take(FAILED)
        teller.end()
    assert told[False] == ["a.yaml: 1 passed, 1 failed\n"]
    assert told[True] == ["\r\x1b[K1 of 2, 0 failed: o", "\r\x1b[K2 of 2, 1 failed: t", "\r\x1b[K"]
    assert closing_line([PASSED, FAILED]) == "1 passed, 1 failed"
