"""Answers before figures: ours against Spark batch, Flink's against ours where the two mean the same.

The events of the check go on for more than a day and come in many batches, so that rows change and leave, windows close
and sessions grow from batch to batch.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from benchmarks.nexmark.answers import checked
from benchmarks.nexmark.comparison import SYSTEMS
from benchmarks.nexmark.events import Shape
from benchmarks.nexmark.flink import client
from benchmarks.nexmark.flink.agreement import Row, verdict
from benchmarks.nexmark.place import Place
from penstock.engine import session
from penstock.log import Log

EVENTS, BATCH = 200_000, 33_330
SHAPE = Shape(events_per_second=2)
"""28 hours: all parts of a day, and midnight. Batches end in the middle of windows and sessions."""


Wrong = dict[tuple[str, str], str]
"""Of a query and a system, what is not right about its answer."""


def wrong_answers(folder: Path, names: Sequence[str], *, flink: bool) -> Wrong:
    """A query to which we have a wrong answer is wrong on all systems."""
    small = Place(folder / "checked", EVENTS, BATCH, SHAPE)
    small.prepare(flink=flink)
    with session("nexmark", conf={"spark.driver.memory": "4g"}) as spark, Log.open(small.log) as log:
        found = checked(spark, log, folder / "home", small.side, names, batch=BATCH)
    wrong: Wrong = {}
    for name, answer in found.items():
        reason = f"wrong answer: {answer}" if isinstance(answer, str) else ""
        print(f"{name}: {reason or 'right'}", flush=True)
        wrong |= {(name, system): reason for system in SYSTEMS if reason}
    right = {name: answer for name, answer in found.items() if isinstance(answer, pa.Table)}
    return wrong | (flinks_wrong_answers(right, small.files) if flink else {})


def flinks_wrong_answers(ours: Mapping[str, pa.Table], files: Path) -> Wrong:
    wrong: Wrong = {}
    for name, rows in flinks_answers(list(ours), files).items():
        try:
            said, right = rows if isinstance(rows, str) else verdict(name, ours[name], rows), not isinstance(rows, str)
        except AssertionError as error:
            said, right = f"wrong answer: {error}", False
        print(f"{name} on Flink: {said}", flush=True)
        wrong |= {(name, system): said for system in SYSTEMS if system != "penstock" and not right}
    return wrong


def flinks_answers(names: Sequence[str], files: Path) -> dict[str, list[Row] | str]:
    """By one process, which is quicker; if it fails, one by one, with what Flink says where it has no answer."""
    found: dict[str, list[Row] | str] = {}
    try:
        found |= client.answers(names, files)
    except client.FlinkError:
        for name in names:
            try:
                found[name] = client.answer(name, files)
            except client.FlinkError as error:
                found[name] = f"no answer: {error.detail}"
    return found
