"""How many records the batches of a query have read, counted in the log.

Spark's own count has a record once for every scan of its source, of which a plan with windows has two.
"""

import json
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from penstock.log import Log


def records_read(progress: Mapping[str, Any], log: Log) -> int:
    """Those of the frames from where the batch began to where it ended, of topics that are not of Penstock's own."""
    source = progress["sources"][0]
    start, end = (json.loads(source[name] or "null") for name in ("startOffset", "endOffset"))
    frames = takewhile(lambda header: header.frame < end["frame"], log.frames(start["frame"] if start else 0))
    return sum(block.count for header in frames for block in header.blocks if "." not in block.topic)
