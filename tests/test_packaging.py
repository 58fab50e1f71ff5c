"""The wheel carries the kernel, and the jar in it fits its sources."""

import os
import runpy
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
SERVICE = "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister"
DOOR = 'package penstock.kernel\nobject Door { def hello: String = "hello" }\n'
USE_THE_LOG = """
import sys
from pathlib import Path
import penstock.log
print(Path(penstock.log.__file__).parent.parent.parent)
with penstock.log.Log.open(sys.argv[1]) as log:
    log.create_topic("t", "id INT")
    log.append("t", [{"id": 1}])
    print([entry.value["id"] for entry in log.read("t")])
"""

pytestmark = pytest.mark.spark


@pytest.fixture
def build() -> Callable[..., None]:
    """The function `build` of kernel/build.py."""
    script: dict[str, Any] = runpy.run_path(str(ROOT / "kernel" / "build.py"))
    return script["build"]  # type: ignore[no-any-return]


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A kernel with one class and one service."""
    folder = tmp_path / "kernel" / "src"
    (folder / SERVICE).parent.mkdir(parents=True)
    (folder / SERVICE).write_text("penstock.kernel.Source\n")
    (folder / "Door.scala").write_text(DOOR)
    return folder


def test_a_jar_holds_classes_and_resources_and_no_sources(
    build: Callable[..., None], sources: Path, tmp_path: Path
) -> None:
    build(sources, tmp_path / "kernel.jar")
    names = zipfile.ZipFile(tmp_path / "kernel.jar").namelist()
    assert names == [
        "META-INF/MANIFEST.MF",
        "penstock/kernel/Door$.class",
        "penstock/kernel/Door.class",
        SERVICE,
    ]


def test_a_jar_is_built_again_when_a_source_changes_and_only_then(
    build: Callable[..., None], sources: Path, tmp_path: Path
) -> None:
    jar = tmp_path / "kernel.jar"
    build(sources, jar)
    first = jar.stat().st_mtime_ns
    build(sources, jar)
    assert jar.stat().st_mtime_ns == first
    (sources / SERVICE).write_text("penstock.kernel.Other\n")
    build(sources, jar)
    assert zipfile.ZipFile(jar).read(SERVICE) == b"penstock.kernel.Other\n"


def test_a_kernel_that_does_not_compile_leaves_the_old_jar(
    build: Callable[..., None], sources: Path, tmp_path: Path
) -> None:
    jar = tmp_path / "kernel.jar"
    build(sources, jar)
    before = jar.read_bytes()
    (sources / "Door.scala").write_text("object Door {")
    with pytest.raises(SystemExit, match="the kernel does not compile"):
        build(sources, jar)
    assert jar.read_bytes() == before


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


def test_the_wheel_carries_the_kernel_with_its_service(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert "penstock/py.typed" in archive.namelist()
        assert "penstock/engine/kernel.jsa" not in archive.namelist()  # which fits this machine only
        jar = zipfile.ZipFile(archive.open("penstock/engine/kernel.jar"))
        assert SERVICE in jar.namelist()


def test_the_wheel_carries_the_dashboard(wheel: Path) -> None:
    files = {f"penstock/serve/dashboard/{each.name}" for each in (ROOT / "src/penstock/serve/dashboard").iterdir()}
    with zipfile.ZipFile(wheel) as archive:
        assert len(files) > 10 and files <= set(archive.namelist())


def test_an_installed_wheel_has_the_kernel_the_command_and_a_log_that_works(wheel: Path, tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(installed)]
    subprocess.run([*pip, str(wheel)], check=True)
    (metadata,) = distributions(name="penstock", path=[str(installed)])
    (command,) = metadata.entry_points.select(group="console_scripts")
    assert (command.name, command.value) == ("penstock", "penstock.cli:main")
    assert zipfile.is_zipfile(installed / "penstock" / "engine" / "kernel.jar")
    ran = subprocess.run(
        [sys.executable, "-c", USE_THE_LOG, str(tmp_path / "log")],
        env={**os.environ, "PYTHONPATH": str(installed)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout) == (0, f"{installed}\n[1]\n"), ran.stderr
