"""What cases want, as Spark's batch engine says it: `python -m tests.fill FILE...` writes case files anew.

Every view that a step names under `want`, `changes` or `late` gets its rows there, whatever stood there before; a view
without rows (`want: {totals: }`) is enough to ask for them. Comments are kept only above the first case.
"""

import json
import logging
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import takewhile
from pathlib import Path
from typing import Any

from penstock.app.testing import Case, cases_in
from penstock.app.testing.bench import Ground
from penstock.app.testing.comparing import Row
from penstock.app.testing.documents import documents_in
from penstock.app.testing.how import How
from penstock.app.testing.playing import InBatch
from penstock.app.testing.running import room
from penstock.app.testing.values import shown

PLAIN = re.compile(r"(?!(?:true|false|null|nan)$)[A-Za-z][\w.]*(?: [\w.]+)*", re.IGNORECASE | re.ASCII)
WIDTH = 120


def main(paths: Sequence[Path]) -> None:
    logging.disable()  # PySpark tells of every view that is asked for before it is there
    with room() as folder, How().session(folder) as ground:
        for path in paths:
            values = [document.value for document in documents_in(path)]
            for number, (case, value) in enumerate(zip(cases_in([path]), values, strict=True)):
                print(f"{path.name}: {case.name}", file=sys.stderr)
                if case.error is None:
                    fill(ground, folder / f"{path.stem}-{number}", case, value)
            path.write_text(_comments(path) + "---\n".join(map(document_text, values)))


def _comments(path: Path) -> str:
    return "".join(f"{line}\n" for line in takewhile(lambda line: line[:1] in ("#", ""), path.read_text().splitlines()))


def fill(ground: Ground, folder: Path, case: Case, value: dict[str, Any]) -> None:
    player = InBatch(ground, folder, case)
    player.open()
    for step, written in zip(case.steps, value["steps"], strict=True):
        seen = player.play(step)
        for view in step.want:
            written["want"][view] = [list(row) for row in _sorted(seen[view].rows)]
        for view in step.changes:
            weights = seen[view].changes
            written["changes"][view] = [[weights[row], *row] for row in _sorted(Counter(dict.fromkeys(weights, 1)))]
            written["changes"][view] = [row for row in written["changes"][view] if row[0]]
        for view in step.late:
            written["late"][view] = [list(row) for late in seen[view].late for row in _sorted(late.rows)]
    player.close()


def _sorted(rows: Counter[Row]) -> list[Row]:
    """NULL first, numbers as numbers."""
    return sorted(rows.elements(), key=lambda row: [_rank(value) for value in row])


def _rank(value: Any) -> tuple[int, Any, str]:
    number = isinstance(value, int | float | Decimal)
    return (0 if value is None else 1, value if number else 0, str(value))


def document_text(case: dict[str, Any]) -> str:
    lines = [f"case: {scalar_text(case['case'])}"]
    if case.get("tags"):
        lines.append(f"tags: {flow_text(case['tags'])}")
    if case.get("from"):
        lines.append(f"from: {scalar_text(case['from'])}")
    lines += ["pipeline: |", *(f"  {line}".rstrip() for line in case["pipeline"].strip("\n").splitlines())]
    if case.get("options"):
        lines.append(f"options: {flow_text(case['options'])}")
    if "error" in case:
        lines.append(f"error: {scalar_text(case['error'])}")
    else:
        lines += ["steps:", *(line for step in case["steps"] for line in _step_lines(step))]
    return "\n".join(lines) + "\n"


def _step_lines(step: dict[str, Any]) -> Iterator[str]:
    mark = "  - "
    for key in ("restart", "crash", "feed", "watermark", "want", "changes", "late"):
        if key not in step:
            continue
        if isinstance(step[key], dict) and key != "watermark":
            yield f"{mark}{key}:"
            for name, rows in step[key].items():
                yield from _row_lines(f"      {name}: ", rows or [])
        else:
            yield f"{mark}{key}: {flow_text(step[key])}"
        mark = "    "


def _row_lines(begin: str, rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    whole = f"{begin}{flow_text(rows)}"
    if len(whole) <= WIDTH or not rows:
        yield whole
        return
    yield begin.rstrip()
    yield from (f"        - {flow_text(row)}" for row in rows)


def flow_text(value: Any) -> str:
    match value:
        case list() | tuple():
            return f"[{', '.join(map(flow_text, value))}]"
        case dict():
            return f"{{{', '.join(f'{scalar_text(key)}: {flow_text(each)}' for key, each in value.items())}}}"
        case _:
            return scalar_text(value)


def scalar_text(value: Any) -> str:
    match value:
        case None:
            return "null"
        case str():
            return value if PLAIN.fullmatch(value) or value in ("NaN",) else json.dumps(value, ensure_ascii=False)
        case float() if value in (float("inf"), float("-inf")):
            return "Infinity" if value > 0 else '"-Infinity"'
        case bool() | int() | float() | Decimal():
            return shown(value)
        case bytes() | date() | datetime():
            return json.dumps(shown(value))
        case _:
            raise TypeError(f"{value!r} has no form in a case file")


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
