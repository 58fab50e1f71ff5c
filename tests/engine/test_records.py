"""What is on record of kills: as many runs as are promised were killed, and every story ended as it should."""

import json
from pathlib import Path

import pytest

RESULTS = Path(__file__).parent / "results"
PROMISED = {"kills": 50, "store_kills": 60, "kafka_kills": 40}


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_the_stories_on_record_ended_equal_to_the_oracle(path: Path) -> None:
    found = json.loads(path.read_text())
    assert {story["outcome"] for story in found["stories"]} == {"equal to the oracle"}
    kills = [kill["at"] for story in found["stories"] for kill in story["kills"]]
    assert len(kills) >= PROMISED[path.stem]
    assert found["hits"] == {at: kills.count(at) for at in kills}
