"""Window functions and the first rows equal plain computations: the checks of `kernel/test/penstock/kernel/engine`."""

from collections.abc import Callable

import pytest


@pytest.mark.spark
def test_windows_equal_windows_computed_anew(run_checks: Callable[[str], str]) -> None:
    assert run_checks("penstock.kernel.engine.WindowChecks") == "58 passed, 0 failed"


@pytest.mark.spark
def test_the_first_rows_equal_those_of_a_sorted_list(run_checks: Callable[[str], str]) -> None:
    assert run_checks("penstock.kernel.engine.TopKChecks") == "14 passed, 0 failed"
