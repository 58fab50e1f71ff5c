"""The store that the documentation shows keeps the contract."""

import inspect
import re
import textwrap
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from penstock.views import Store
from penstock.views import store as documented
from tests.views.contract import *  # noqa: F403
from tests.views.contract_leaving import *  # noqa: F403


def example() -> str:
    """The code in the module's documentation."""
    found = re.search(r"complete:\n\n(.*?)\n\n`penstock", inspect.getdoc(documented) or "", re.DOTALL)
    assert found
    return textwrap.dedent(found.group(1))


@pytest.fixture
def open_store() -> Callable[[], Store]:
    names: dict[str, Any] = {}
    exec(example(), names)
    return names["Memory"]  # type: ignore[no-any-return]


@pytest.fixture
def contents() -> Callable[[Any, str], Counter[str]]:
    return lambda store, view: +store.rows(view)


def test_the_example_has_about_thirty_lines() -> None:
    assert len([line for line in example().splitlines() if line.strip()]) <= 35
