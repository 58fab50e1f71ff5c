"""Every block of the README, the guides and the reference of commands does what it says.

Blocks marked `python` are run, and a block marked `text` right after one is what it prints. In blocks marked
`console` each line after a `$` is run by a shell, and the lines after it are what it says; three dots stand
for anything. A command that ends in `&` goes on while the others are run; what is looked at meanwhile may take a
while to be as it should. The blocks of a page are run in order, in a folder of their own. A block that imports
something that is not installed is left out.
"""

import ast
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import pytest

from penstock.app.beginning import EXAMPLE
from penstock.model import declaration_text, pipeline_of

ROOT = Path(__file__).parent.parent
LOG = "docs/guide-log.md"
PAGES = (
    "README.md",
    "docs/guide.md",
    LOG,
    "docs/reference/commands.md",
    "docs/guide-serving.md",
    "docs/guide-dashboard.md",
)
SPARK = re.compile(r"penstock\.engine|penstock (demo|run|explain|verify|reset)\b")
PATIENCE_SECONDS = 250
INTERRUPTED = 130
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    line: int
    kind: str
    text: str
    want: str = ""

    @property
    def needs_spark(self) -> bool:
        return SPARK.search(self.text) is not None

    @property
    def can_run(self) -> bool:
        return self.kind != "python" or all(find_spec(name) for name in _imported(self.text))


def blocks(page: str) -> Iterator[Block]:
    """The blocks that are run, each with what is wanted of it."""
    text = (ROOT / page).read_text()
    found = list(FENCE.finditer(text))
    for at, match in enumerate(found):
        follows = found[at + 1] if at + 1 < len(found) else None
        near = follows is not None and follows[1] == "text" and not text[match.end() : follows.start()].strip()
        want = follows[2] if follows is not None and near else ""
        if match[1] in ("python", "console"):
            yield Block(text[: match.start()].count("\n") + 2, match[1], match[2], want)


def _imported(text: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(text)))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return {name.split(".")[0] for name in plain}


class Shell:
    """Runs commands as a user who has .venv/bin on the path; `export` and `cd` last for the page."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._exported: dict[str, str] = {}
        self._jobs: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._jobs:
            self._end(self._jobs.pop())

    def check(self, block: Block) -> None:
        if block.kind == "python":
            assert_like(self._run([sys.executable, "-c", block.text]), block.want)
            return
        for command, want in commands(block.text):
            self._check(command, want)

    def _check(self, command: str, want: str) -> None:
        if exported := re.fullmatch(r"export (\w+)=(\S+)", command):
            self._exported[exported[1]] = exported[2]
        elif begun := re.fullmatch(r"(.*?)\s*&", command):
            self._jobs.append(subprocess.Popen(["bash", "-c", f"exec {begun[1]}"], **self._surroundings))
        elif command == "kill %1":
            assert self._end(self._jobs.pop()) == INTERRUPTED
        else:
            command, _, folder = command.partition(" && cd ")
            self._await(["bash", "-c", command], want)
            self._folder = self._folder / folder

    def _await(self, command: list[str], want: str) -> None:
        """The command says what is wanted: at once, or soon if something is at work meanwhile."""
        until = time.monotonic() + (PATIENCE_SECONDS if self._jobs else 0)
        while not is_like(found := self._run(command), want) and time.monotonic() < until:
            assert all(job.poll() is None for job in self._jobs), "what was at work has ended"
        assert_like(found, want)

    @property
    def _surroundings(self) -> dict[str, Any]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        kept = {name: value for name, value in os.environ.items() if name != "PENSTOCK_LOG"}
        environment = kept | {"PATH": path, "COLUMNS": "200"} | self._exported
        return {"cwd": self._folder, "env": environment, "stdin": subprocess.DEVNULL}

    def _run(self, command: list[str]) -> str:
        errors = subprocess.PIPE if command[0] == sys.executable else subprocess.STDOUT
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
            **self._surroundings,
        )
        return str(done.stdout + (done.stderr or "" if done.returncode else ""))

    def _end(self, job: subprocess.Popen[bytes]) -> int:
        job.terminate()
        return job.wait(timeout=PATIENCE_SECONDS)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block and what it should say."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, want = part.partition("\n")
        yield command, want


def is_like(found: str, want: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in want.rstrip("\n").split("..."))
    return re.fullmatch(pattern, found.rstrip("\n"), re.DOTALL) is not None


def assert_like(found: str, want: str) -> None:
    assert is_like(found, want), f"found:\n{found}\nwanted:\n{want}"


def run_page(page: str, folder: Path, *, spark: bool) -> None:
    with Shell(folder) as shell:
        for block in blocks(page):
            try:
                if block.can_run and (spark or not block.needs_spark):
                    shell.check(block)
            except AssertionError as error:
                raise AssertionError(f"{page}, line {block.line}: {error}") from None


def test_the_blocks_on_the_log_that_need_no_spark_do_what_they_say(tmp_path: Path) -> None:
    run_page(LOG, tmp_path, spark=False)


@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", PAGES)
def test_all_blocks_do_what_they_say(page: str, tmp_path: Path) -> None:
    run_page(page, tmp_path, spark=True)


def test_the_readme_shows_the_pipeline_that_init_makes() -> None:
    [shown] = re.findall(r"^```sql\n(.*?)^```$", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    made, told = (declaration_text(pipeline_of(text)).split() for text in (EXAMPLE, shown))
    assert told == made


def test_the_readmes_first_screen_has_at_most_40_lines() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    first = next((at for at, line in enumerate(lines) if line.startswith("## ")), len(lines))
    assert first <= 40
    assert max(map(len, lines[:first])) <= 120


def test_links_between_pages_lead_somewhere() -> None:
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_test_that_the_documents_name_exists() -> None:
    known = {name for path in ROOT.glob("tests/**/*.py") for name in re.findall(r"def (test_\w+)", path.read_text())}
    for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]:
        named = re.findall(r"`(?:[\w/.]+::)?(test_\w+)`", page.read_text())
        assert set(named) <= known, f"{page.name}: {sorted(set(named) - known)}"
