"""Reports: outcomes for machines, as JSON lines and as the XML that CI systems read (JUnit's)."""

import json
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree as Xml

from penstock.app.testing.case import Outcome
from penstock.errors import CommandError

FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML cannot hold."""


def json_lines(outcomes: Iterable[Outcome]) -> str:
    return "".join(f"{json.dumps(_object(each), ensure_ascii=False)}\n" for each in outcomes)


def _object(outcome: Outcome) -> dict[str, object]:
    return {
        "name": outcome.case.name,
        "outcome": "passed" if outcome.passed else "failed",
        "reason": outcome.reason,
        "seconds": round(outcome.seconds, 3),
        "file": outcome.case.spot.file,
    }


def junit(outcomes: Sequence[Outcome]) -> str:
    """One suite for each file."""
    root = Xml.Element("testsuites")
    for file, group in groupby(outcomes, key=lambda each: each.case.spot.file):
        cases = list(group)
        failed = sum(not each.passed for each in cases)
        seconds = f"{sum(each.seconds for each in cases):.3f}"
        suite = Xml.SubElement(
            root, "testsuite", name=file, tests=str(len(cases)), failures=str(failed), errors="0", time=seconds
        )
        for each in cases:
            _add(suite, each)
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add(suite: Xml.Element, outcome: Outcome) -> None:
    file = outcome.case.spot.file
    case = Xml.SubElement(
        suite,
        "testcase",
        name=_clean(outcome.case.name),
        classname=Path(file).stem,
        file=file,
        line=str(outcome.case.spot.line),
        time=f"{outcome.seconds:.3f}",
    )
    if not outcome.passed:
        failure = Xml.SubElement(case, "failure", message=_clean(outcome.reason.splitlines()[0]))
        failure.text = _clean(outcome.reason)


def _clean(text: str) -> str:
    return FORBIDDEN.sub("?", text)


def write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f'"{path}" cannot be written', detail=f"{error.strerror}.") from None
