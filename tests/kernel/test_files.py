"""Checkpoint files are synced, in the right order: the checks of `FilesChecks.scala` in kernel/test."""

from collections.abc import Callable

import pytest


@pytest.mark.spark
def test_files_of_a_checkpoint_are_synced_before_they_count(run_checks: Callable[[str], str]) -> None:
    assert run_checks("penstock.kernel.engine.FilesChecks") == "13 passed, 0 failed"
