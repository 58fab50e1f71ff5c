"""A log whose records lie in Kafka, as the kernel finds it: frames without bodies, and where the records are."""

import json
import os
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

from penstock.log import Log
from penstock.log.frame import BACK, BACK_MAGIC, FRONT, FRONT_MAGIC, padded_json
from penstock.log.mark import Mark, read_mark


@dataclass(frozen=True)
class Run:
    """Records of a partition, offsets `[base, end)`; `times` are the least and the largest event time."""

    topic: str
    partition: int
    base: int
    end: int
    count: int | None = None
    times: tuple[int, int] | None = None


class Mirror:
    """A folder that the kernel reads. Topics are declared as in an embedded log."""

    def __init__(
        self, folder: Path, servers: str, prefix: str, settings: Mapping[str, str] | None = None, *, patience: int = 600
    ) -> None:
        self.folder = folder
        self.tops: dict[tuple[str, int], int] = {}
        with Log.open(folder):
            pass
        origin = {"bootstrap": servers, "prefix": prefix, "settings": dict(settings or {}), "patience": patience}
        (folder / "kafka.json").write_text(json.dumps(origin))

    def declare(self, name: str, columns: str | None, **options: Any) -> None:
        with Log.open(self.folder) as log:
            log.create_topic(name, columns, **options)

    def grow(self, name: str, columns: str) -> None:
        with Log.open(self.folder) as log:
            log.change_schema(name, columns)

    def frame(self, *runs: Run, at: int | None = None) -> int:
        """Appends a frame that names these records; its number."""
        mark = read_mark(self.folder / "committed")
        assert mark is not None
        header = {
            "frame": mark.next_frame,
            "group": mark.next_frame,
            "at": at if at is not None else time.time_ns() // 1000,
            "blocks": self._blocks(runs),
        }
        data = _encoded(header)
        with open(self.folder / "journal" / f"{mark.stretch:020d}.journal", "r+b") as file:
            file.seek(mark.end)
            file.write(data)
        _write(self.folder / "committed", Mark(mark.stretch, mark.end + len(data), mark.next_frame + 1, mark.cut))
        return mark.next_frame

    def _blocks(self, runs: Sequence[Run]) -> list[dict[str, Any]]:
        blocks, index = [], 0
        for run in runs:
            block: dict[str, Any] = {
                "topic": run.topic,
                "partition": run.partition,
                "schema": 0,
                "base": run.base,
                "count": run.end - run.base if run.count is None else run.count,
                "index": index,
                "bytes": 0,
                "crc": 0,
                "kafka": True,
                "end": run.end,
            }
            if run.times is not None:
                key = (run.topic, run.partition)
                self.tops[key] = max(self.tops.get(key, run.times[1]), run.times[1])
                block |= {"times": list(run.times), "top": self.tops[key]}
            blocks.append(block)
            index += run.end - run.base
        return blocks


def _encoded(header: Mapping[str, Any]) -> bytes:
    text = padded_json(header)
    front = FRONT.pack(FRONT_MAGIC, len(text), 0, 0, 0)[:16]
    crc = crc32(text, crc32(front))
    return b"".join([front, struct.pack("<II", crc, 0), text, text, BACK.pack(0, crc, 0, len(text), BACK_MAGIC)])


def _write(path: Path, mark: Mark) -> None:
    with open(path, "r+b") as file:
        os.pwrite(file.fileno(), mark.encode(), 0)
