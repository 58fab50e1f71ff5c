"""Which windows late rows missed, by what the batches of a lineage say."""

from pathlib import Path

from penstock.log import Log
from penstock.views import current
from penstock.views.missed import Window, missed_windows


def test_late_rows_are_summed_up_by_window_and_the_others_beside_them(tmp_path: Path) -> None:
    batches = [
        {"late": {"v": 5, "w": 1}, "missed": {"v": [[0, 10, 3], [None, 20, 1]]}},
        {},
        {"late": {"v": 2}, "missed": {"v": [[0, 10, 2]]}},
    ]
    with Log.open(tmp_path) as log:
        for lineage in (1, 2):
            for batch, told in enumerate(batches[: 4 - lineage]):
                note = {"pipeline": "shop", "lineage": lineage, "batch": batch, "from": 0, "until": 0, **told}
                log.append_all({}, producer=f"shop/{lineage}", sequence=batch, note=note)
        note = {"pipeline": "shop", "current": 1, "views": {}, "reads": []}
        log.append_all({}, producer="shop", sequence=1, note=note)
        seen = current(log, "shop")
        assert seen is not None
        assert missed_windows(log, seen) == {
            Window("v", 0, 10): 5,
            Window("v", None, 20): 1,
            Window("v"): 1,
            Window("w"): 1,
        }
