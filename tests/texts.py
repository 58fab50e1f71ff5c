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
def refused(name: str, **hidden: object) -> Iterator[None]:
    """What is done inside raises an error of ours, of the class and with the text in golden/NAME.txt.

    What is `hidden` differs from run to run: its name stands for it in the text.
    """
    with pytest.raises(PenstockError) as error:
        yield
    text = f"{type(error.value).__name__}: {error.value}"
    for word, value in hidden.items():
        text = text.replace(str(value), word.upper())
    assert_golden(name, text)
