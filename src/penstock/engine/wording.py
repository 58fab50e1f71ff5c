"""Spark's texts, as people read them: without codes, states and positions, which are ours to say."""

import re
from typing import Final

CODE: Final = re.compile(r"\[[A-Z][A-Z0-9_.]+\]\s*")
STATE: Final = re.compile(r"\s*SQLSTATE: \w+.*", re.DOTALL)
STACK: Final = "JVM stacktrace"
ENDED: Final = "terminated with exception: "


def plain_text(text: str) -> str:
    """`[CODE] It is so. SQLSTATE: 42601 (line 1, pos 14)`  =>  `It is so.`"""
    return plain_lines(text)[0].strip()


def plain_lines(text: str) -> list[str]:
    """All that it says, where that is more than one line."""
    said = text.split(STACK)[0].rpartition(ENDED)[2].strip()
    return STATE.sub("", CODE.sub("", said, count=1)).strip().split("\n")
