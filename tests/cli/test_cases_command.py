"""`penstock test`, as far as it goes without Spark."""

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
