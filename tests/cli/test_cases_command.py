"""`penstock test`: what it refuses without Spark, and a whole run of the command."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import Penstock

WHOLE = """\
case: a sum follows
pipeline: CREATE STREAM s (v INT); CREATE VIEW sums AS SELECT sum(v) AS v FROM s;
steps: [{feed: {s: [[1, 1]]}, want: {sums: [[1]]}}]
"""


def test_the_command_refuses_what_it_cannot_read_before_spark_is_started(penstock: Penstock) -> None:
    penstock.file("cases.yaml", "case: x\n")
    ran = penstock.run("test", "cases.yaml")
    assert (ran.code, ran.out, ran.err.splitlines()[0]) == (1, "", 'a case needs "pipeline"')
    penstock.file("cases.yaml", WHOLE)
    ran = penstock.run("test", "cases.yaml", "--only", "nothing")
    assert (ran.code, ran.err.splitlines()[0]) == (1, 'no case has "nothing" in its name')


@pytest.mark.spark
def test_a_case_that_fails_makes_the_command_fail_and_is_in_both_reports(tmp_path: Path) -> None:
    wrong = WHOLE.replace("a sum follows", "a sum is wrong").replace("[[1]]}}]", "[[2]]}}]")
    (tmp_path / "cases.yaml").write_text(f"{WHOLE}---\n{wrong}")
    reports = ["--junit", "junit.xml", "--json", "outcomes.json"]
    command = [sys.executable, "-c", "from penstock.cli import main; main()", "test", "cases.yaml", *reports]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.splitlines()[-1]) == (1, "1 passed, 1 failed"), ran.stderr
    told = [json.loads(line) for line in (tmp_path / "outcomes.json").read_text().splitlines()]
    assert {each["name"]: each["outcome"] for each in told} == {"a sum follows": "passed", "a sum is wrong": "failed"}
    found = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert [case.get("name") for case in found.iter("testcase") if case.find("failure") is not None] == [
        "a sum is wrong"
    ]
