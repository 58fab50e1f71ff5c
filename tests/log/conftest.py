"""What the tests of the log share."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.log import Log

pytest.register_assert_rewrite(
    "tests.log.contract",
    "tests.log.contract_appends",
    "tests.log.contract_groups",
    "tests.log.contract_marks",
    "tests.log.contract_one_order",
    "tests.log.contract_values",
    "tests.log.dying",
    "tests.log.story",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def open_log(folder: Path) -> Iterator[Callable[..., Log]]:
    """Opens the test's log, as often as asked; all handles are closed at the end."""
    opened: list[Log] = []

    def open_(**options: object) -> Log:
        opened.append(Log.open(folder, **options))  # type: ignore[arg-type]
        return opened[-1]

    yield open_
    for log in opened:
        log.close()


@pytest.fixture
def log(open_log: Callable[..., Log]) -> Log:
    return open_log()
