"""What leaves a batch, whole and in ranges: the checks of `kernel/test/penstock/kernel/engine/LeavingChecks`."""

from collections.abc import Callable

import pytest


@pytest.mark.spark
def test_what_leaves_a_batch_is_packed_and_ordered(run_checks: Callable[[str], str]) -> None:
    assert run_checks("penstock.kernel.engine.LeavingChecks") == "3 passed, 0 failed"
