"""The guide to RabbitMQ does what it says: its blocks are run as they stand, but for the broker's address."""

from dataclasses import replace
from pathlib import Path

from tests.capture.amqp.rabbit import Rabbit
from tests.test_readme import Shell, blocks

ADDRESS = "127.0.0.1:5672"


def test_the_blocks_of_the_guide_say_what_they_should(rabbit: Rabbit, tmp_path: Path) -> None:
    found = list(blocks("docs/guide-amqp.md"))
    assert len(found) == 8
    with Shell(tmp_path) as shell:
        for block in found:
            there = f"127.0.0.1:{rabbit.broker.port}"
            shell.check(
                replace(block, text=block.text.replace(ADDRESS, there), want=block.want.replace(ADDRESS, there))
            )
