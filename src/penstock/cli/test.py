"""`penstock test`: case files on the real engine."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from penstock.app.testing import Case, Outcome, cases_in
from penstock.app.testing.reports import json_lines, junit, write
from penstock.cli.console import answer, busy
from penstock.cli.working import STARTING, Conf, Master, interruptible, settings
from penstock.errors import CommandError


def test(  # noqa: PLR0913 (options of the command)
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Case files, or folders of them.", show_default=False)
    ],
    *,
    only: Annotated[str, typer.Option("--only", metavar="TEXT", help="Only cases with this in their name.")] = "",
    batch: Annotated[
        bool, typer.Option("--batch", help="Play the cases by Spark's batch engine: are they right at all?")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="How many cases at once; as many as cores without it.")
    ] = None,
    junit_file: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write the outcomes as XML for CI systems.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the outcomes as JSON, one case in a line.")
    ] = None,
    master: Master = "local[*]",
    conf: Conf = None,
) -> None:
    """Run case files: pipelines, what is fed to them, and what their views must then hold.

    Shows what does not hold: rows that are missing (-) and rows that are too much (+). Exits with 1 if a case
    failed.
    """
    from penstock.app.testing.how import How  # noqa: PLC0415 (PySpark takes long to import)
    from penstock.app.testing.running import run_cases  # noqa: PLC0415 (the same)

    cases = _chosen(cases_in(files), only)
    outcomes: list[Outcome] = []
    with interruptible(), answer() as out, _told(cases) as teller, busy(STARTING) as started:

        def take(outcome: Outcome) -> None:
            outcomes.append(outcome)
            if not outcome.passed:
                teller.end()
                out.write(failure_text(outcome))
                out.flush()
            teller.take(outcome)

        run_cases(cases, How(master, settings(conf), jobs, batch), take, on_ready=started)
        teller.end()
        out.write(f"{closing_line(outcomes)}\n")
    _report(cases, outcomes, junit_file, json_file)
    if not all(each.passed for each in outcomes):
        raise typer.Exit(1)


def _chosen(cases: Sequence[Case], only: str) -> list[Case]:
    chosen = [case for case in cases if only in case.name]
    if not chosen:
        raise CommandError(
            f'no case has "{only}" in its name' if only else "there are no cases", detail=f"{len(cases)} were read."
        )
    return chosen


def _report(
    cases: Sequence[Case], outcomes: Sequence[Outcome], junit_file: Path | None, json_file: Path | None
) -> None:
    """In the order of the files, whoever was ready first."""
    rank = {id(case): at for at, case in enumerate(cases)}
    ordered = sorted(outcomes, key=lambda each: rank[id(each.case)])
    if junit_file is not None:
        write(junit_file, junit(ordered))
    if json_file is not None:
        write(json_file, json_lines(ordered))


def failure_text(outcome: Outcome) -> str:
    spot = outcome.case.spot
    lines = [f"FAILED  {outcome.case.name}  ({spot.file}:{spot.line})"]
    return "\n".join([*lines, *(f"  {line}" for line in outcome.reason.splitlines())]) + "\n\n"


def closing_line(outcomes: Sequence[Outcome]) -> str:
    passed = sum(each.passed for each in outcomes)
    return f"{passed} passed, {len(outcomes) - passed} failed"


class Teller:
    """How far it has come: one line that changes on a terminal, elsewhere a line for each file."""

    def __init__(self, cases: Sequence[Case], write: Callable[[str], None], *, live: bool) -> None:
        self._left = Counter(case.spot.file for case in cases)
        self._total = len(cases)
        self._done: Counter[tuple[str, bool]] = Counter()
        self._write = write
        self._live = live
        self._open = False

    def take(self, outcome: Outcome) -> None:
        file = outcome.case.spot.file
        self._done[file, outcome.passed] += 1
        self._left[file] -= 1
        if self._live:
            failed = sum(count for (_, passed), count in self._done.items() if not passed)
            text = f"{self._done.total()} of {self._total}, {failed} failed: {outcome.case.name}"
            self._write(f"\r\x1b[K{text[: _width() - 1]}")
            self._open = True
        elif not self._left[file]:
            self._write(f"{file}: {self._done[file, True]} passed, {self._done[file, False]} failed\n")

    def end(self) -> None:
        """What comes next begins on a line of its own."""
        if self._open:
            self._write("\r\x1b[K")
        self._open = False


def _width() -> int:
    return os.get_terminal_size(sys.stderr.fileno()).columns or 80


@contextmanager
def _told(cases: Sequence[Case]) -> Iterator[Teller]:
    def write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    teller = Teller(cases, write, live=sys.stderr.isatty())
    try:
        yield teller
    finally:
        teller.end()
