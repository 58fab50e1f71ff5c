"""What the tests of webhooks share: a log, a shop that writes into it, and who receives what it tells."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.log import Log
from penstock.views.sinks import delivering
from tests.app.receivers import SECRET, Receiver, receiving
from tests.app.sinking import VIEWS
from tests.views.shop import Shop


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path / "log") as log:
        yield log


@pytest.fixture
def shop(log: Log, tmp_path: Path) -> Shop:
    (tmp_path / "secrets").write_text(f"{SECRET}\n")
    shop = Shop(log, views=VIEWS)
    shop.announce()
    return shop


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow each other closely."""
    monkeypatch.setattr(delivering, "FIRST_SECONDS", 0.002)
