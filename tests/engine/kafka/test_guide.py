"""The guide's pipeline on Kafka does what it says: its blocks are run as they stand, but for the broker's address."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from services.kafka import Cluster
from tests.test_readme import ROOT, Shell, blocks

PAGE = "docs/guide-kafka.md"
ADDRESS = "127.0.0.1:9092"
pytestmark = pytest.mark.spark


def test_the_pipeline_of_the_guide_says_what_it_should(kafka: Cluster, tmp_path: Path) -> None:
    (declared,) = re.findall(r"^```sql\n(.*?)^```$", (ROOT / PAGE).read_text(), re.DOTALL | re.MULTILINE)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "pipeline.sql").write_text(declared.replace(ADDRESS, kafka.servers))
    with Shell(tmp_path) as shell:
        for block in blocks(PAGE):
            shell.check(
                replace(
                    block,
                    text=block.text.replace(ADDRESS, kafka.servers),
                    want=block.want.replace(ADDRESS, kafka.servers),
                )
            )
