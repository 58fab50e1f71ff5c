"""Kept facts: a compacted topic of one partition, of which the newest value of each key counts.

`now` has all that was committed before it was asked. A value is JSON; a key without one is forgotten.
"""

import json
from collections.abc import Mapping
from threading import Lock
from typing import Any

from penstock.log.kafka.client import Client
from penstock.log.kafka.messages import Outgoing

CONFIG = {
    "cleanup.policy": "compact",
    "segment.bytes": str(16 << 20),
    "min.cleanable.dirty.ratio": "0.1",
    "max.message.bytes": str(8 << 20),
}


class Kept:
    def __init__(self, client: Client, topic: str) -> None:
        self.topic = topic
        self._client = client
        self._lock = Lock()
        self._facts: dict[str, Any] = {}
        self._position = 0

    def now(self) -> Mapping[str, Any]:
        self._client.check_open()
        with self._lock:
            end = self._client.settled_end(self.topic, self._position)
            for messages in self._client.messages(self.topic, 0, self._position, end):
                for message in messages:
                    self._keep((message.key() or b"").decode(), message.value())
            self._position = max(self._position, end)
            return dict(self._facts)

    def known(self) -> Mapping[str, Any]:
        """What `now` said last."""
        with self._lock:
            return dict(self._facts)

    def take(self, message: Outgoing, offset: int, end: int) -> None:
        """Takes in a fact from whoever wrote it, at `offset`, where the topic ended with the mark of its commit and
        nothing was written since this was last read: else reading tells.
        """
        with self._lock:
            if self._position == offset and end == offset + 2:
                self._keep((message.key or b"").decode(), message.value)
                self._position = end

    def message(self, key: str, fact: Any) -> Outgoing:
        """What has to be written for the fact to be kept."""
        return Outgoing(self.topic, 0, key.encode(), json.dumps(fact, ensure_ascii=False).encode(), [])

    def _keep(self, key: str, value: bytes | None) -> None:
        if value is None:
            self._facts.pop(key, None)
        else:
            self._facts[key] = json.loads(value)
