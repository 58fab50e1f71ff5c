"""The guide to clusters does what it says: its blocks are run as they stand, but for addresses and folders."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from services.kafka import Cluster
from services.spark import SparkCluster
from tests.test_readme import ROOT, Shell, blocks

PAGE = "docs/guide-cluster.md"
pytestmark = pytest.mark.spark


def test_the_pipeline_of_the_guide_runs_on_a_cluster(kafka: Cluster, cluster: SparkCluster, tmp_path: Path) -> None:
    def ours(text: str) -> str:
        text = text.replace("127.0.0.1:9092", kafka.servers).replace("spark://127.0.0.1:7077", cluster.url)
        return text.replace("/mnt/shared", str(tmp_path / "shared"))

    (declared,) = re.findall(r"^```sql\n(.*?)^```$", (ROOT / PAGE).read_text(), re.DOTALL | re.MULTILINE)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "pipeline.sql").write_text(ours(declared))
    with Shell(tmp_path) as shell:
        for block in blocks(PAGE):
            shell.check(replace(block, text=ours(block.text), want=ours(block.want)))
    assert (tmp_path / "shared" / "penstock" / "shop" / "lineages" / "1" / "checkpoint" / "offsets" / "0").exists()
