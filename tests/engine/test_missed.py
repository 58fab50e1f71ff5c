"""How many late rows of a batch each window missed, as far as that is told."""

from pathlib import Path

import pyarrow as pa

from penstock.engine.missed import MOST, missed_in

TIME = pa.timestamp("us", tz="UTC")


def written(path: Path, batches: list[list[tuple[int | None, int | None]]]) -> Path:
    schema = pa.schema([("row", pa.string()), ("window_start", TIME), ("window_end", TIME)])
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as file:
        for windows in batches:
            starts, ends = ([window[at] for window in windows] for at in (0, 1))
            rows = [pa.array(["{}"] * len(windows)), pa.array(starts, TIME), pa.array(ends, TIME)]
            file.write_batch(pa.record_batch(rows, schema=schema))
    return path


def test_rows_are_counted_by_their_windows_over_all_files(tmp_path: Path) -> None:
    """A start may be unknown; who missed no window counts for none; times may be such as Python does not have."""
    far = 2**62
    files = [
        written(tmp_path / "a", [[(0, 10), (None, None)], [(10, 20), (0, 10)]]),
        written(tmp_path / "b", [[(None, 20), (0, 10), (far, far + 1)]]),
    ]
    assert sorted(missed_in(files), key=repr) == sorted(
        [(0, 10, 3), (10, 20, 1), (None, 20, 1), (far, far + 1, 1)], key=repr
    )
    assert missed_in([]) == []


def test_only_the_windows_that_most_rows_missed_are_told(tmp_path: Path) -> None:
    rare = [(each, each + 1) for each in range(1000, 1000 + MOST)]
    often = [(7, 8), (5, 6), (7, 8), (5, 6), (7, 8)]
    found = missed_in([written(tmp_path / "a", [[*rare, *often]])])
    assert found[:2] == [(7, 8, 3), (5, 6, 2)]
    assert len(found) == MOST
