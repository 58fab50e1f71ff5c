"""`penstock view --export`: a file with all rows, and the position at which they are right."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from penstock.cli import export
from penstock.log import Log
from penstock.views import SqliteStore, catch_up
from tests.cli.conftest import Penstock
from tests.views.shop import Shop, spend

ROWS = [spend(f"{n:03}", n) for n in range(150)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A pipeline that has run, as far as one sees."""
    home = tmp_path / "shop/.penstock"
    home.mkdir(parents=True)
    with Log.open(home / "log") as log, SqliteStore(home / "views.sqlite") as store:
        shop = Shop(log)
        shop.announce()
        shop.batch(spend=[(None, row) for row in ROWS])
        catch_up(log, "shop", store)
    return tmp_path / "shop"


@pytest.mark.parametrize("name", ["spend.parquet", "spend.arrow"])
def test_all_rows_are_in_the_file_with_their_position(penstock: Penstock, folder: Path, name: str) -> None:
    file = folder / name
    ran = penstock.run("view", "spend", "--pipeline", folder, "--export", file)
    assert (ran.code, ran.out, ran.err) == (0, "", f"150 rows of spend in {file}\n")
    table = pq.read_table(file) if file.suffix == ".parquet" else pyarrow.feather.read_table(file)
    assert table.to_pylist() == ROWS
    assert table.schema.metadata[b"penstock.view"] == b"spend"
    assert table.schema.metadata[b"penstock.position"].startswith(b"1.")
    assert sorted(os.listdir(folder)) == [".penstock", name]


def test_rows_are_chosen_and_other_files_are_refused(penstock: Penstock, folder: Path) -> None:
    chosen = folder / "few.parquet"
    penstock.run("view", "spend", "--pipeline", folder, "--where", "orders < 3", "--export", chosen)
    assert pq.read_table(chosen).to_pylist() == ROWS[:3]
    ran = penstock.run("view", "spend", "--pipeline", folder, "--export", folder / "spend.xlsx")
    assert (ran.code, "names no form for rows" in ran.err) == (1, True)
    for nowhere in ("no/spend.arrow", "few.parquet/spend.arrow"):
        ran = penstock.run("view", "spend", "--pipeline", folder, "--export", folder / nowhere)
        assert (ran.code, "cannot be written" in ran.err) == (1, True)


@pytest.mark.parametrize("name", ["spend.parquet", "spend.arrow"])
def test_an_export_that_fails_midway_leaves_the_file_that_was_there(
    penstock: Penstock, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder / name
    penstock.run("view", "spend", "--pipeline", folder, "--export", file)
    before = file.read_bytes()

    def half(_: pa.Table, path: str) -> None:
        Path(path).write_bytes(before[: len(before) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(export.WRITERS, file.suffix, half)
    ran = penstock.run("view", "spend", "--pipeline", folder, "--export", file)
    assert (ran.code, ran.err) == (1, f'"{file}" cannot be written\n  detail: No space left on device.\n')
    assert (file.read_bytes(), sorted(os.listdir(folder))) == (before, [".penstock", name])
