"""The guide to Kafka does what it says: its blocks are run as they stand, but for the broker's address."""

from dataclasses import replace
from pathlib import Path

import pytest

from services.kafka import Cluster
from tests.test_readme import Shell, blocks

ADDRESS = "127.0.0.1:9092"


@pytest.mark.parametrize(("page", "count"), [("docs/guide-kafka.md", 3), ("docs/formats/kafka.md", 1)])
def test_the_blocks_of_the_guide_say_what_they_should(kafka: Cluster, tmp_path: Path, page: str, count: int) -> None:
    found = [block for block in blocks(page) if block.kind == "python"]
    assert len(found) == count
    with Shell(tmp_path) as shell:
        for block in found:
            shell.check(replace(block, text=block.text.replace(ADDRESS, kafka.servers)))
