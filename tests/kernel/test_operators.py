"""Operators, folds and delivery equal plain collections: the checks of `kernel/test/penstock/kernel/engine`."""

from collections.abc import Callable

import pytest


@pytest.mark.spark
def test_operators_equal_plain_collections(run_checks: Callable[[str], str]) -> None:
    assert run_checks("penstock.kernel.engine.OperatorChecks") == "129 passed, 0 failed"
