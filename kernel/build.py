"""Builds the kernel: `kernel/src` becomes `src/penstock/engine/kernel.jar`, and `kernel/kafka` a jar beside it.

The Scala compiler is the one inside PySpark's own jars, so a Java runtime is all that has to be installed.
The jar holds the compiled classes and every other file under `kernel/src` at its relative path. The same
classes give the same bytes, whenever they are packed. A jar that was built from the same sources for the
same PySpark is left alone. This file uses the standard library only and never imports penstock: it runs
before there is a penstock to import.

    python kernel/build.py                   build the jar if it is missing or out of date
    python kernel/build.py --kafka CLIENT    the same, and what reads Kafka, against its client in the jar CLIENT
    python kernel/build.py --java            only check that Java is there and new enough
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "kernel" / "src"
JAR = ROOT / "src" / "penstock" / "engine" / "kernel.jar"
KAFKA_SOURCES = ROOT / "kernel" / "kafka"
KAFKA_JAR = JAR.with_name("kernel-kafka.jar")

OLDEST_JAVA = 17
COMPILER_OPTIONS = ["-deprecation", "-feature", "-unchecked", "-encoding", "UTF-8"]
MANIFEST = "META-INF/MANIFEST.MF"
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


def build(sources: Path = SOURCES, jar: Path = JAR, *, against: Sequence[Path] = ()) -> None:
    """Afterwards `jar` fits `sources` and the jars that they need besides PySpark's; a failed build leaves the old jar
    as it was.
    """
    manifest = f"Manifest-Version: 1.0\r\nKernel-Key: {key(sources, against)}\r\n\r\n"
    if manifest == manifest_of(jar):
        return
    print(f"building {jar.name} from {sources.parent.name}/{sources.name}", file=sys.stderr, flush=True)
    jar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jar.parent, prefix=".kernel-") as work:
        classes, packed = Path(work, "classes"), Path(work, "kernel.jar")
        classes.mkdir()
        compile_scala(sources, classes, against)
        pack(packed, manifest=manifest, folders=[classes, sources])
        # In one step: another process may be starting Spark with the old jar right now.
        os.replace(packed, jar)


def build_kafka(client: Path) -> None:
    """The kernel, and what reads Kafka, against the client in this jar."""
    build()
    build(KAFKA_SOURCES, KAFKA_JAR, against=[JAR, client])


def key(sources: Path, against: Sequence[Path] = ()) -> str:
    """A hash of all that decides what is in the jar: the sources, this script, the version of PySpark, other jars."""
    digest = hashlib.sha256()
    for name, path in [*files(sources), ("build.py", Path(__file__))]:
        content = path.read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    digest.update(importlib.metadata.version("pyspark").encode())
    for jar in against:
        digest.update(hashlib.sha256(jar.read_bytes()).digest())
    return digest.hexdigest()[:40]


def files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files under `folder` as (path relative to it, path), in an order that is the same everywhere."""
    found = ((path.relative_to(folder).as_posix(), path) for path in folder.rglob("*") if path.is_file())
    yield from sorted(item for item in found if not item[1].name.startswith("."))


def manifest_of(jar: Path) -> str | None:
    """The manifest of `jar`, or None where there is no readable jar."""
    try:
        with zipfile.ZipFile(jar) as archive:
            return archive.read(MANIFEST).decode()
    except (OSError, KeyError, zipfile.BadZipFile):
        return None


def compile_scala(sources: Path, classes: Path, against: Sequence[Path] = ()) -> None:
    """Compiles every Scala file under `sources` into `classes`; the compiler speaks for itself."""
    scala = [str(path) for _, path in files(sources) if path.suffix == ".scala"]
    if not scala:
        return
    found = os.pathsep.join(map(str, [pyspark_jars() / "*", *against]))
    jvm = [java(), "-Xss8m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", found]
    compiler = ["scala.tools.nsc.Main", "-usejavacp", "-d", str(classes), *COMPILER_OPTIONS]
    if subprocess.run([*jvm, *compiler, *scala], check=False).returncode != 0:
        fail("the kernel does not compile", "The Scala compiler's messages are above.", f"Mend {sources}.")


def pack(jar: Path, *, manifest: str, folders: list[Path]) -> None:
    """Writes a jar with `manifest` first, then the files of `folders` that are no Scala sources."""
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(entry(MANIFEST), manifest)
        for folder in folders:
            for name, path in files(folder):
                if path.suffix != ".scala" and name != MANIFEST:
                    archive.writestr(entry(name), path.read_bytes())


def entry(name: str) -> zipfile.ZipInfo:
    """A jar entry that does not remember when or by whom it was written."""
    item = zipfile.ZipInfo(name, ZIP_EPOCH)
    item.compress_type = zipfile.ZIP_DEFLATED
    item.external_attr = 0o644 << 16
    return item


def pyspark_jars() -> Path:
    """Where PySpark keeps its jars. SPARK_HOME is not asked: the wheel is for the PySpark beside it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        fail("PySpark is not installed", "The Scala compiler comes with it.", "Run: make setup")
    return Path(spec.submodule_search_locations[0], "jars")


def java() -> str:
    """The Java that Spark would start, if it is new enough (penstock/engine/java.py has the full story)."""
    home = os.environ.get("JAVA_HOME")
    command = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    place = f"JAVA_HOME={home}" if home else "the PATH"
    if command is None:
        fail("Java was not found", f"There is no java in {place}.", install_java())
    said = subprocess.run([command, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if found is None or int(found[1]) < OLDEST_JAVA:
        version = f"is Java {found[1]}" if found else "does not say which version it is"
        fail(f"Java {OLDEST_JAVA} or newer is needed", f"{command} {version}.", install_java())
    return command


def install_java() -> str:
    """What to do about a Java that is missing or old."""
    return f"Install a Java runtime, {OLDEST_JAVA} or 21, and put it on the PATH or name it in JAVA_HOME."


def fail(primary: str, detail: str, hint: str) -> NoReturn:
    """Ends the build with the three lines of an error."""
    sys.exit(f"{primary}\n  detail: {detail}\n  hint:   {hint}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--java"]:
        java()
    elif sys.argv[1:2] == ["--kafka"]:
        build_kafka(Path(sys.argv[2]).resolve())
    else:
        build()
