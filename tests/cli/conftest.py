"""The command line inside the test's own process, with a log of its own."""

import io
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.cli import main
from tests.texts import assert_golden


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it wrote."""

    code: int
    data: bytes
    err: str

    @property
    def out(self) -> str:
        return self.data.decode()

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class Penstock:
    """Runs `penstock log ...`; a command that fails fails the test, unless it is run by `refused`."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._patch = patch

    def __call__(self, *arguments: str | Path, given: str | bytes = b"") -> Ran:
        ran = self.run("log", *arguments, given=given)
        assert ran.code == 0, ran.err
        return ran

    def refused(self, name: str, *arguments: str | Path, given: str | bytes = b"") -> Ran:
        """The command exits with 1, and its error is the one in golden/cli/NAME.txt."""
        ran = self.run("log", *arguments, given=given)
        assert (ran.code, ran.out) == (1, "")
        assert_golden(f"cli/{name}", ran.err.strip().replace(str(self.folder), "FOLDER"))
        return ran

    def run(self, *arguments: str | Path, given: str | bytes = b"") -> Ran:
        data = given if isinstance(given, bytes) else given.encode()
        out, err = io.TextIOWrapper(io.BytesIO(), write_through=True), io.StringIO()
        with self._patch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            with pytest.raises(SystemExit) as end:
                main([str(each) for each in arguments])
        code = end.value.code if isinstance(end.value.code, int) else 0
        return Ran(code, out.buffer.getvalue(), err.getvalue())

    def file(self, name: str, text: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path


@pytest.fixture
def penstock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Penstock:
    """The commands over a log in a folder of the test's own."""
    monkeypatch.setenv("PENSTOCK_LOG", str(tmp_path / "log"))
    monkeypatch.chdir(tmp_path)
    return Penstock(tmp_path, monkeypatch)


@pytest.fixture
def shop(penstock: Penstock) -> Penstock:
    """The same, with a stream of orders and a table of customers."""
    columns = "id BIGINT NOT NULL, customer BIGINT, amount DECIMAL(10,2), at TIMESTAMP"
    penstock("create", "orders", "--schema", columns, "--event-time", "at")
    penstock("create", "customers", "--schema", "id BIGINT NOT NULL, city STRING", "--key", "id")
    return penstock
