"""The guide to Kafka does what it says: its blocks are run as they stand, but for the broker's address."""

from dataclasses import replace
from pathlib import Path

from services.kafka import Cluster
from tests.test_readme import Shell, blocks

ADDRESS = "127.0.0.1:9092"


def test_the_blocks_of_the_guide_say_what_they_should(kafka: Cluster, tmp_path: Path) -> None:
    found = [block for block in blocks("docs/guide-kafka.md") if block.kind == "python"]
    assert len(found) == 3
    with Shell(tmp_path) as shell:
        for block in found:
            shell.check(replace(block, text=block.text.replace(ADDRESS, kafka.servers)))
