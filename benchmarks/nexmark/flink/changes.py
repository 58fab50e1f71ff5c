"""Rows or changes of rows as Flink writes them to files, a JSON object each; and the rows that are left of changes."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote


def completed(file: Path) -> Iterator[str]:
    """The lines of a file, with the columns that only its folders name: `day=2024-01-01/minute=00%3A00`."""
    named = dict(part.split("=", 1) for part in file.parts if "=" in part)
    missing = {name: unquote(value) for name, value in named.items()}
    with file.open() as lines:
        for line in lines:
            yield json.dumps(json.loads(line) | missing) + "\n" if missing else line


def folded(lines: Iterable[str]) -> list[str]:
    """The rows that are left of all changes: a row appears or goes, in whichever order they are read."""
    left: Counter[str] = Counter()
    for line in lines:
        change = json.loads(line)
        if change["op"] == "c":
            left[json.dumps(change["after"])] += 1
        else:
            left[json.dumps(change["before"])] -= 1
    if any(count < 0 for count in left.values()):
        raise ValueError("a row went that had not come")
    return [f"{row}\n" for row in left.elements()]
