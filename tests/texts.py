"""Golden texts: what users read is kept in files and reviewed in the diff.

`PENSTOCK_GOLDEN=write pytest` writes them anew.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.errors import PenstockError

GOLDEN = Path(__file__).parent / "golden"


def assert_golden(name: str, text: str) -> None:
    """The text is the one in golden/NAME.txt."""
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("PENSTOCK_GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    assert text + "\n" == path.read_text()


@contextmanager
def refused(name: str) -> Iterator[None]:
    """What is done inside raises an error of ours, of the class and with the text in golden/NAME.txt."""
    with pytest.raises(PenstockError) as error:
        yield
    assert_golden(name, f"{type(error.value).__name__}: {error.value}")
