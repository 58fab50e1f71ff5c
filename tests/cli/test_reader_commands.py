"""`penstock log groups`, `lag`, `reset`, `forget`, `bound`, `queue`, `tail --group`: who reads, and how far each is."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.log import Log
from tests.cli.conftest import Penstock
from tests.texts import assert_golden


@pytest.fixture
def jobs(penstock: Penstock) -> Penstock:
    """A log with the topic `jobs`, with five records in two partitions."""
    penstock("create", "jobs", "--schema", "n INT", "--partitions", "2")
    with Log.open(penstock.folder / "log") as log:
        log.append("jobs", [{"n": n} for n in range(3)], partition=0)
        log.append("jobs", [{"n": n} for n in range(3, 5)], partition=1)
    return penstock


def told(penstock: Penstock, *arguments: str) -> list[list[str]]:
    """The cells of a table, without its header."""
    return [line.split() for line in penstock(*arguments).lines[1:]]


# Groups


def test_groups_are_listed_with_their_lag(jobs: Penstock) -> None:
    assert told(jobs, "groups") == []
    jobs("reset", "billing", "jobs", "--earliest")
    jobs("reset", "audit", "jobs", "--latest")
    assert_golden("cli/groups", jobs("groups").out.rstrip())
    assert_golden("cli/lag", jobs("lag").out.rstrip())


def test_a_group_is_reset(jobs: Penstock) -> None:
    assert_golden("cli/reset", jobs("reset", "billing", "jobs", "--earliest").out.rstrip())
    jobs("reset", "billing", "jobs", "--offset", "2", "--partition", "0")
    assert [row[3] for row in told(jobs, "lag", "billing")] == ["2", "0"]
    jobs("reset", "billing", "jobs", "--place", "2")
    assert [row[3] for row in told(jobs, "lag", "billing")] == ["3", "0"]
    jobs("reset", "billing", "jobs", "--time", "2100-01-01")
    assert [row[5] for row in told(jobs, "lag", "billing")] == ["0", "0"]


def test_a_reset_needs_one_place(jobs: Penstock) -> None:
    jobs.refused("reset_nowhere", "reset", "billing", "jobs")
    jobs.refused("reset_twice", "reset", "billing", "jobs", "--earliest", "--offset", "1")


def test_a_group_that_is_at_work_is_not_reset(jobs: Penstock) -> None:
    with Log.open(jobs.folder / "log") as log, log.group("billing").join("jobs"):
        ran = jobs.run("log", "reset", "billing", "jobs", "--earliest")
        assert ran.code == 1 and 'group "billing" cannot be reset while it has members' in ran.err


def test_a_group_is_forgotten(jobs: Penstock) -> None:
    jobs("reset", "billing", "jobs", "--earliest")
    jobs("forget", "billing")
    assert told(jobs, "groups") == []
    jobs.refused("no_group", "lag", "billing")


def test_records_are_followed_as_a_member_of_a_group(jobs: Penstock) -> None:
    for want in (5, 1):
        assert len(followed(jobs.folder, want)) == want
        jobs("append", "jobs", given='{"n": 9}')
    assert [row[5] for row in told(jobs, "lag", "billing")] in (["0", "1"], ["1", "0"])


def followed(folder: Path, count: int) -> list[str]:
    """What `tail --group` prints, until it has printed so much and all of it is committed."""
    command = [sys.executable, "-c", "from penstock.cli import main; main()"]
    tail = subprocess.Popen(
        [*command, "log", "tail", "jobs", "--group", "billing"], stdout=subprocess.PIPE, text=True, env=os.environ
    )
    assert tail.stdout is not None
    found = [tail.stdout.readline() for _ in range(count)]
    until = time.monotonic() + 60
    with Log.open(folder / "log") as log:
        while any(lag.records for lag in log.group("billing").lag()):
            assert time.monotonic() < until
            time.sleep(0.02)
    tail.send_signal(signal.SIGINT)
    assert tail.wait(60) == 0
    return found


def test_a_group_does_not_choose_its_partitions(jobs: Penstock) -> None:
    jobs.refused("tail_group_partition", "tail", "jobs", "--group", "billing", "--partition", "0")


# Bounds


def test_a_bound_is_declared_changed_and_shown(jobs: Penstock) -> None:
    jobs("create", "other", "--bound", "10", "--when-full", "drop")
    jobs("reset", "billing", "other", "--earliest")
    jobs("queue", "create", "mail", "other")
    jobs("append", "other", given='{"value": "x"}\n' * 8)
    ran = jobs("append", "other", given='{"value": "x"}\n' * 3)
    assert ran.err == '0 records appended to "other"; 3 dropped, because the topic is full\n'
    assert_golden("cli/describe_bound", jobs("describe", "other").out.rstrip())
    out = jobs("bound", "other", "--records", "8", "--timeout", "0 seconds").out
    assert out == 'topic "other": at most 8 unread, then appends wait up to 0 seconds\n'
    jobs.refused("topic_full", "append", "other", given='{"value": "x"}')
    assert jobs("bound", "other", "--none").out == 'topic "other": no bound\n'
    jobs("append", "other", given='{"value": "x"}')
    jobs.refused("bound_nothing", "bound", "other")


# Queues


def test_a_queue_is_made_changed_and_shown(jobs: Penstock) -> None:
    made = jobs("queue", "create", "mail", "jobs", "--visibility", "1 minute", "--deliveries", "2")
    assert made.out == 'queue "mail" created: over "jobs"\n'
    again = jobs("queue", "create", "mail", "jobs", "--visibility", "1 minute", "--deliveries", "2")
    assert again.out == 'queue "mail" is there already: over "jobs"\n'
    jobs.refused("queue_otherwise", "queue", "create", "mail", "jobs")
    jobs("queue", "change", "mail", "--missing", "skip")
    assert_golden("cli/queue_show", jobs("queue", "show").out.rstrip())
    jobs.refused("no_queue", "queue", "show", "post")


def test_what_was_printed_is_acknowledged(jobs: Penstock) -> None:
    jobs("queue", "create", "mail", "jobs")
    some = jobs("queue", "take", "mail", "--limit", "2").lines
    rest = jobs("queue", "take", "mail").lines
    assert len(some) == 2 and sorted(json.loads(line)["n"] for line in [*some, *rest]) == [0, 1, 2, 3, 4]
    assert jobs("queue", "take", "mail").lines == []


def test_dead_letters_are_shown_and_delivered_again(jobs: Penstock) -> None:
    jobs("queue", "create", "mail", "jobs")
    with Log.open(jobs.folder / "log") as log, log.queue("mail").worker() as worker:
        for message in worker.take(2):
            message.reject("no such customer")
    assert told(jobs, "queue", "show", "mail")[0][2:5] == ["3", "0", "2"]
    letters = [json.loads(line) for line in jobs("read", "mail.dead-letters").lines]
    assert {letter["_headers"]["penstock.reason"] for letter in letters} == {"no such customer"}
    assert (
        jobs("queue", "redrive", "mail", "--limit", "1").out
        == '1 dead letter of queue "mail" will be delivered again\n'
    )
    assert jobs("queue", "redrive", "mail").out == '1 dead letter of queue "mail" will be delivered again\n'
    assert len(jobs("queue", "take", "mail").lines) == 5


def test_a_queue_begins_anew_and_is_forgotten(jobs: Penstock) -> None:
    jobs("queue", "create", "mail", "jobs", "--latest")
    assert jobs("queue", "take", "mail").lines == []
    jobs("queue", "reset", "mail", "--earliest")
    assert len(jobs("queue", "take", "mail").lines) == 5
    jobs.refused("queue_reset_nowhere", "queue", "reset", "mail")
    jobs.refused("queue_reset_twice", "queue", "reset", "mail", "--earliest", "--latest")
    jobs("queue", "delete", "mail")
    assert told(jobs, "queue", "show") == []
