"""Sketches: the same bytes wherever batches are cut, and estimates as near to the truth as is documented."""

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.log import Record
from penstock.views import SqliteStore, ViewReader, catch_up
from tests.engine.conftest import Bench
from tests.engine.folded import exact

Row = dict[str, Any]
pytestmark = pytest.mark.spark


def answers(bench: Bench, view: str) -> list[Row]:
    """What a store has made of the changes, which it refuses where a row leaves that is not there."""
    with SqliteStore(bench.store) as store:
        catch_up(bench.log, "test", store)
    with ViewReader(bench.store) as reader:
        rows: list[Row] = reader.rows(view).table.to_pylist()
        return rows


SKETCHES = {
    "hll": "hll_sketch_agg(k)",
    "small_hll": "hll_sketch_agg(k, 6)",
    "theta": "theta_sketch_agg(k)",
    "small_theta": "theta_sketch_agg(k, 6)",
    "tuple": "tuple_sketch_agg_double(k, x, 6)",
    "registers": "approx_count_distinct(k)",
    "top": "approx_top_k(z, 5)",
    "small_top": "approx_top_k(z, 5, 16)",
    "tops": "approx_top_k_accumulate(z, 16)",
    "bits": "bitmap_construct_agg(z)",
    "counts": "count_min_sketch(k, 0.1d, 0.9d, 7)",
    "quantiles": "approx_percentile(x, array(0.1, 0.5), 20)",
    "histogram": "histogram_numeric(x, 9)",
    "median": "median(x)",
}
LISTED = ", ".join(f"{call} AS {name}" for name, call in SKETCHES.items())
WITHIN = "OVER (PARTITION BY g ORDER BY id)"
CUT = f"""
    CREATE STREAM s (g STRING, k BIGINT, z BIGINT, x DOUBLE);
    CREATE TABLE t (id BIGINT PRIMARY KEY, g STRING, k BIGINT, z BIGINT, x DOUBLE);
    CREATE VIEW of_stream AS SELECT g, {LISTED} FROM s GROUP BY g;
    CREATE VIEW of_table AS SELECT g, {LISTED} FROM t GROUP BY g;
    CREATE VIEW of_rows AS SELECT id, hll_sketch_agg(k, 6) {WITHIN} AS hll, approx_top_k(z, 2, 16) {WITHIN} AS top,
      approx_percentile(x, 0.5, 9) {WITHIN} AS middle FROM t;
"""


def chance_row(chance: random.Random, group: str) -> Row:
    z = min(int(chance.paretovariate(0.7)), 30_000)
    return {"g": group, "k": chance.randrange(2**40), "z": z, "x": float(chance.randrange(10_000)) / 7}


def append_frames(bench: Bench, chance: random.Random) -> None:
    """Each frame holds rows of a small, a middling and a large group; in the table a row may become what it was."""
    known = {number: {"id": number, **chance_row(chance, f"g{number % 3}")} for number in range(90)}
    for _ in range(5):
        rows = [chance_row(chance, group) for group, n in (("few", 2), ("some", 60), ("many", 600)) for _ in range(n)]
        changed: list[Any] = [known[number] for number in chance.sample(sorted(known), 30)]
        changed += [
            {"id": number, **chance_row(chance, f"g{number % 3}")} for number in chance.sample(sorted(known), 20)
        ]
        changed += [Record({"id": number}, deleted=True) for number in chance.sample(sorted(known), 10)]
        bench.append({"s": rows, "t": changed})


def test_replayed_in_other_batches_sketches_have_the_same_bytes(bench: Callable[..., Bench], tmp_path: Path) -> None:
    whole = bench(CUT)
    append_frames(whole, random.Random(5))
    shutil.copytree(whole.log.folder, tmp_path / "again" / "log")
    whole.drain()
    cut = bench(CUT, max_records_per_batch=700, folder=tmp_path / "again", shuffle_partitions=3)
    cut.drain()
    assert (len(whole.batches), len(cut.batches)) == (1, 5)
    for view, key in (("of_stream", "g"), ("of_table", "g"), ("of_rows", "id")):
        one, other = ({row[key]: row for row in answers(each, view)} for each in (whole, cut))
        different = [(k, name) for k in one for name in one[k] if exact(one[k][name]) != exact(other[k][name])]
        assert one.keys() == other.keys() and not different, (view, different)


GROUPS = 100
"""Data sets."""
TRACKED = 48
ESTIMATES = {
    "registers": ("approx_count_distinct(v)", 0.05),
    "hll": ("hll_sketch_estimate(hll_sketch_agg(v))", 1.04 / 2**6),
    "small_hll": ("hll_sketch_estimate(hll_sketch_agg(v, 8))", 1.04 / 2**4),
    "theta": ("theta_sketch_estimate(theta_sketch_agg(v))", 1 / 2**6),
    "small_theta": ("theta_sketch_estimate(theta_sketch_agg(v, 6))", 1 / 2**3),
    "tuple": ("tuple_sketch_estimate_integer(tuple_sketch_agg_integer(v, 1, 6))", 1 / 2**3),
}
"""By name a number of distinct values, and its relative standard error as docs/reference/sql.md has it."""
OTHERS = f"""bitmap_count(bitmap_construct_agg(bitmap_bit_position(z))) AS bits, approx_top_k(z, 3, {TRACKED}) AS top,
    approx_percentile(v, 0.5, 100) AS middle"""
NUMBERS = ", ".join(f"{call} AS {name}" for name, (call, _) in ESTIMATES.items())
NEAR = f"""
    CREATE STREAM s (g BIGINT, v BIGINT, z BIGINT);
    CREATE TABLE t (id BIGINT PRIMARY KEY, g BIGINT, v BIGINT, z BIGINT);
    CREATE VIEW of_stream AS SELECT g, {NUMBERS}, {OTHERS} FROM s GROUP BY g;
    CREATE VIEW of_table AS SELECT g, {NUMBERS}, {OTHERS} FROM t GROUP BY g;
    CREATE VIEW parts WITH (store = 'none') AS
      SELECT g, id % 5 AS part, bitmap_construct_agg(bitmap_bit_position(z)) AS bits FROM t GROUP BY g, id % 5;
    CREATE VIEW of_parts AS SELECT g, bitmap_count(bitmap_or_agg(bits)) AS bits FROM parts GROUP BY g;
"""


def group_rows(chance: random.Random, group: int, distinct: int) -> list[Row]:
    """Some values twice, in any order; of the other column few values, some of them often."""
    values = [chance.randrange(2**50) for _ in range(distinct)]
    every = values + chance.choices(values, k=distinct // 8)
    return [{"g": group, "v": v, "z": min(int(chance.paretovariate(0.6)), 500)} for v in every]


def assert_near(rows: list[Row], held: Iterable[Mapping[str, Any]]) -> None:
    groups: dict[int, list[Mapping[str, Any]]] = {}
    for each in held:
        groups.setdefault(each["g"], []).append(each)
    assert {row["g"] for row in rows} == groups.keys() and len(rows) == GROUPS
    for name, (_, error) in ESTIMATES.items():
        truths = {group: len({each["v"] for each in rows}) for group, rows in groups.items()}
        near = sum(abs(row[name] / truths[row["g"]] - 1) <= 3 * error for row in rows)
        assert near >= 99, (name, near)
    for row in rows:
        assert_others_near(row, groups[row["g"]])


def assert_others_near(row: Row, held: list[Mapping[str, Any]]) -> None:
    """What errs no further than it says, in all data sets."""
    counts = Counter(each["z"] for each in held)
    assert row["bits"] == len(counts)
    margin = 3.5 / 64 * len(held)  # the map of 48 items has 64 places
    assert all(abs(found["count"] - counts[found["item"]]) <= margin for found in row["top"]), row["top"]
    assert row["top"][0]["item"] == counts.most_common(1)[0][0]
    ranks = [sum(each["v"] < row["middle"] for each in held), sum(each["v"] <= row["middle"] for each in held)]
    margin = 1 + len(held) / 100
    assert ranks[0] - margin <= len(held) / 2 <= ranks[1] + margin


def test_estimates_are_within_three_standard_errors(bench: Callable[..., Bench]) -> None:
    chance = random.Random(11)
    stream = [row for group in range(GROUPS) for row in group_rows(chance, group, 100 + 45 * group)]
    table = [row for group in range(GROUPS) for row in group_rows(chance, group, 60 + 3 * group)]
    chance.shuffle(stream)
    held = {number: {"id": number, **row} for number, row in enumerate(table)}
    made = bench(NEAR)
    half = len(stream) // 2
    made.append({"s": pa.Table.from_pylist(stream[:half]), "t": pa.Table.from_pylist(list(held.values()))})
    made.drain()
    gone = chance.sample(sorted(held), len(held) // 4)
    for number in gone:
        del held[number]
    moved = {number: {**held[number], "v": chance.randrange(2**50)} for number in chance.sample(sorted(held), 2000)}
    made.append({"s": pa.Table.from_pylist(stream[half:]), "t": [Record({"id": each}, deleted=True) for each in gone]})
    made.append({"t": pa.Table.from_pylist(list(moved.values()))})
    made.drain()
    held |= moved
    assert_near(answers(made, "of_stream"), stream)
    assert_near(answers(made, "of_table"), held.values())
    bits = {row["g"]: row["bits"] for row in answers(made, "of_table")}
    assert {row["g"]: row["bits"] for row in answers(made, "of_parts")} == bits
