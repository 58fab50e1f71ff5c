"""Every block of README.md and docs/guide.md does what it says.

Blocks marked `python` are run, and a block marked `text` right after one is what it prints. In blocks marked
`console` each line after a `$` is run by a shell, and the lines after it are what it says; three dots stand
for anything. The blocks of a page are run in order, in a folder of their own. A block that imports something
that is not installed is left out.
"""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "docs/guide.md")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    line: int
    kind: str
    text: str
    want: str = ""

    @property
    def needs_spark(self) -> bool:
        return "penstock.engine" in self.text or "penstock demo" in self.text

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


@dataclass(frozen=True)
class Shell:
    """Runs commands as a user who has .venv/bin on the path; `export` lasts for the page."""

    folder: Path
    exported: dict[str, str]

    def run(self, command: list[str]) -> str:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        kept = {name: value for name, value in os.environ.items() if name != "PENSTOCK_LOG"}
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=kept | {"PATH": path} | self.exported,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if command[0] == sys.executable else subprocess.STDOUT,
            text=True,
            timeout=250,
            check=False,
        )
        return done.stdout + (done.stderr or "" if done.returncode else "")

    def check(self, block: Block) -> None:
        if block.kind == "python":
            assert_like(self.run([sys.executable, "-c", block.text]), block.want)
            return
        for command, want in commands(block.text):
            if exported := re.fullmatch(r"export (\w+)=(\S+)", command):
                self.exported[exported[1]] = exported[2]
            else:
                assert_like(self.run(["bash", "-c", command]), want)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block and what it should say."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, want = part.partition("\n")
        yield command, want


def assert_like(found: str, want: str) -> None:
    pattern = ".*".join(re.escape(part) for part in want.split("..."))
    assert re.fullmatch(pattern, found, re.DOTALL), f"found:\n{found}\nwanted:\n{want}"


def run_page(page: str, folder: Path, *, spark: bool) -> None:
    shell = Shell(folder, {})
    for block in blocks(page):
        if block.can_run and (spark or not block.needs_spark):
            try:
                shell.check(block)
            except AssertionError as error:
                raise AssertionError(f"{page}, line {block.line}: {error}") from None


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_that_need_no_spark_do_what_they_say(page: str, tmp_path: Path) -> None:
    run_page(page, tmp_path, spark=False)


@pytest.mark.spark
@pytest.mark.parametrize("page", PAGES)
def test_all_blocks_do_what_they_say(page: str, tmp_path: Path) -> None:
    run_page(page, tmp_path, spark=True)


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
