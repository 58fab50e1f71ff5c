"""Changes of a table as Flink writes them to files, one JSON object each, and the rows that are left of them."""

import json
from collections import Counter
from collections.abc import Iterable


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
