"""What a master's name says, and what is told of one that does not answer."""

from contextlib import closing
from socket import create_server

import pytest

from penstock.engine.master import addresses, check_reachable, is_local, is_on_this_machine
from services.processes import free_ports
from tests.texts import refused


@pytest.mark.parametrize(
    ("master", "local", "here"),
    [
        ("local", True, True),
        ("local[*]", True, True),
        ("local[2, 3]", True, True),
        ("local-cluster[2,1,1024]", False, True),
        ("spark://127.0.0.1:7077", False, True),
        ("spark://localhost:7077,10.0.0.7:7077", False, False),
        ("yarn", False, False),
        ("k8s://https://10.0.0.1:6443", False, False),
    ],
)
def test_a_master_does_its_work_here_or_elsewhere(master: str, *, local: bool, here: bool) -> None:
    assert (is_local(master), is_on_this_machine(master)) == (local, here)


def test_the_masters_of_a_standalone_cluster_have_addresses() -> None:
    assert addresses("spark://one:7077,[::1]:7078") == [("one", 7077), ("::1", 7078)]
    assert addresses("yarn") == addresses("local[2]") == []


def test_masters_none_of_which_answers_are_told() -> None:
    one, other = free_ports(2)
    with refused("engine/master-unreachable", one=str(one), other=str(other)):
        check_reachable(f"spark://127.0.0.1:{one},127.0.0.1:{other}")


def test_one_master_that_answers_is_enough() -> None:
    (silent,) = free_ports(1)
    with closing(create_server(("127.0.0.1", 0))) as answering:
        check_reachable(f"spark://127.0.0.1:{silent},127.0.0.1:{answering.getsockname()[1]}")
