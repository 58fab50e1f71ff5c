"""Paged state equals plain maps: the checks of `kernel/test/penstock/kernel/state`."""

from collections.abc import Callable

import pytest


@pytest.mark.spark
def test_paged_state_equals_plain_maps(run_checks: Callable[[str], str]) -> None:
    assert run_checks("penstock.kernel.state.StateChecks") == "23 passed, 0 failed"
