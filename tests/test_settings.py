"""What Spark is started with follows from the master, the cores and the user's own settings."""

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from penstock.engine.java import find_java
from penstock.engine.session import KERNEL, QUIET, settings
from penstock.engine.sharing import is_fresh
from tests.texts import refused


def chosen(master: str = "local[*]", cores: int = 4, **conf: str) -> Mapping[str, str]:
    """The settings; `spark_jars` stands for spark.jars."""
    named = {key.replace("_", "."): value for key, value in conf.items()}
    return settings("test", master=master, cores=cores, conf=named, log_level="error")


@pytest.mark.parametrize(
    ("master", "slots"),
    [
        ("local[*]", "4"),
        ("local[3]", "3"),
        ("local[3,2]", "3"),
        ("local", "1"),
        ("local-cluster[2,3,1024]", "6"),
        ("spark://somewhere:7077", "4"),
    ],
)
def test_there_are_as_many_shuffle_partitions_as_tasks_at_once(master: str, slots: str) -> None:
    assert chosen(master)["spark.sql.shuffle.partitions"] == slots


def test_a_star_is_the_cores_that_this_process_may_use() -> None:
    assert chosen("local[*]", cores=4)["spark.master"] == "local[4]"


def test_no_stage_is_tried_again_where_its_tasks_wait_for_each_other() -> None:
    assert chosen("local[2]")["spark.stage.maxConsecutiveAttempts"] == "1"
    assert "spark.stage.maxConsecutiveAttempts" not in chosen("local-cluster[2,1,1024]")


def test_the_users_settings_win() -> None:
    assert chosen(spark_ui_enabled="true")["spark.ui.enabled"] == "true"


def test_the_users_jars_stand_beside_the_kernel() -> None:
    assert chosen(spark_jars="mine.jar")["spark.jars"] == f"{KERNEL},mine.jar"
    assert chosen(spark_sql_extensions="mine.More")["spark.sql.extensions"].endswith("penstock.Extensions,mine.More")


def test_rules_that_the_user_leaves_out_are_left_out_too() -> None:
    left_out = chosen(spark_sql_optimizer_excludedRules="mine.Rule")["spark.sql.optimizer.excludedRules"]
    assert left_out.endswith("PushProjectionThroughLimitAndOffset,mine.Rule")


def test_the_users_class_path_stands_behind_the_kernel() -> None:
    assert (
        chosen(spark_driver_extraClassPath="mine.jar")["spark.driver.extraClassPath"] == f"{KERNEL}{os.pathsep}mine.jar"
    )


def test_checkpoints_on_this_machine_are_synced_those_on_a_cluster_are_the_clusters() -> None:
    assert chosen("local[2]")["spark.hadoop.fs.file.impl"] == "penstock.kernel.engine.LocalFiles"
    elsewhere = chosen("spark://somewhere:7077", spark_driver_extraClassPath="mine.jar")
    assert "spark.hadoop.fs.file.impl" not in elsewhere
    assert elsewhere["spark.driver.extraClassPath"] == "mine.jar"


def test_a_cluster_is_not_told_to_call_back_to_this_machine_only() -> None:
    assert "spark.driver.host" in chosen("local[2]")
    assert "spark.driver.host" not in chosen("spark://somewhere:7077")
    assert "spark.driver.host" not in chosen("yarn")
    assert chosen("spark://127.0.0.1:7077,localhost:7077")["spark.driver.host"] == "127.0.0.1"


def test_on_a_cluster_files_of_state_are_named_by_who_has_written_them() -> None:
    version = "spark.sql.streaming.stateStore.checkpointFormatVersion"
    assert [chosen(master).get(version) for master in ("local[2]", "spark://somewhere:7077", "yarn")] == [
        None,
        "2",
        "2",
    ]


def test_a_setting_that_spark_would_ignore_is_refused() -> None:
    with refused("engine/session-no-setting"):
        chosen(sql_shuffle_partitions="8")


def collectors(conf: Mapping[str, str]) -> list[str]:
    options = settings("test", master="local[2]", cores=2, conf=conf, log_level="error")[
        "spark.driver.extraJavaOptions"
    ]
    return [option for option in options.split() if "GC" in option]


def test_java_is_told_of_one_collector_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)
    assert collectors({}) == ["-XX:+UseParallelGC"]
    assert collectors({"spark.driver.extraJavaOptions": "-XX:+UseG1GC"}) == ["-XX:+UseG1GC"]
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:+UseSerialGC")
    assert collectors({}) == []


def archives(conf: Mapping[str, str]) -> list[str]:
    options = settings("test", master="local[2]", cores=2, conf=conf, log_level="error")
    return [each for each in shlex.split(options["spark.driver.extraJavaOptions"]) if "Archive" in each]


def test_java_is_told_of_an_archive_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "of classes.jsa"
    monkeypatch.setitem(settings.__globals__, "ARCHIVE", archive)
    assert archives({}) == []
    archive.write_text("")
    assert archives({}) == [f"-XX:SharedArchiveFile={archive}"]
    theirs = "-XX:ArchiveClassesAtExit=theirs.jsa"
    assert archives({"spark.driver.extraJavaOptions": theirs}) == [theirs]


def test_java_leaves_an_archive_that_does_not_fit_aside_without_a_word(tmp_path: Path) -> None:
    archive = tmp_path / "kernel.jsa"
    archive.write_text("of another Java")
    command = [find_java(os.environ).command, f"-XX:SharedArchiveFile={archive}", QUIET, "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert "warning" not in done.stderr.lower()


def test_an_archive_is_made_again_when_the_kernel_is_newer(tmp_path: Path) -> None:
    archive = tmp_path / "kernel.jsa"
    assert not is_fresh(archive)
    archive.write_text("")
    assert is_fresh(archive)
    os.utime(archive, (KERNEL.stat().st_mtime - 1,) * 2)
    assert not is_fresh(archive)
