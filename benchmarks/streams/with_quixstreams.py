"""The jobs by Quix Streams, without Kafka: `python -m benchmarks.streams.with_quixstreams --job count ...`

The library works on Kafka topics only; what its `Source` classes read goes to a topic, too. Here all of its own code
runs as it would: its application's loop, rows, contexts, operators, state in RocksDB, checkpoints. Only the object of
`confluent_kafka` beneath its consumer is another one, which hands out bids from memory, already decoded; so is its
producer, which has nothing to do, for there is no changelog topic.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from confluent_kafka import TopicPartition
from quixstreams import Application, State
from quixstreams.dataframe.windows.aggregations import Count
from quixstreams.models import Deserializer
from quixstreams.models.topics import Topic, TopicAdmin, TopicConfig, TopicManager

from benchmarks.streams.bids import START, Asked, Bid, asked, measured, read_bids

TOPIC = "bids"
FIRST_MINUTE = int(START.timestamp()) // 60
Row = Sequence[int]


class Message:
    """What `confluent_kafka` hands out."""

    __slots__ = ("_bid", "_key", "_offset")

    def __init__(self, offset: int, key: bytes, bid: Bid) -> None:
        self._offset, self._key, self._bid = offset, key, bid

    def __len__(self) -> int:
        return 32

    def error(self) -> None:
        return None

    def headers(self) -> None:
        return None

    def key(self) -> bytes:
        return self._key

    def value(self) -> Bid:
        return self._bid

    def topic(self) -> str:
        return TOPIC

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        return 1, self._bid[3]

    def leader_epoch(self) -> None:
        return None


class Consumer:
    """In place of `confluent_kafka.Consumer`: one partition, whose messages are there already."""

    def __init__(self, messages: list[Message], over: Callable[[], None]) -> None:
        self._left = iter(messages)
        self._over = over
        self._assigned: Callable[[], None] | None = None

    def subscribe(self, topics: list[str], on_assign: Callable[..., None], **_: Any) -> None:
        self._assigned = lambda: on_assign(self, [TopicPartition(TOPIC, 0)])

    def poll(self, timeout: float) -> Message | None:
        if self._assigned:
            assigned, self._assigned = self._assigned, None
            assigned()
        message = next(self._left, None)
        if message is None:
            self._over()
        return message

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        return partitions

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return partitions

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float, cached: bool = False) -> tuple[int, int]:  # noqa: FBT001, FBT002
        return 0, 0

    def commit(self, offsets: list[TopicPartition], **_: Any) -> list[TopicPartition]:
        return offsets

    def assign(self, partitions: list[TopicPartition]) -> None:
        pass

    def pause(self, partitions: list[TopicPartition]) -> None:
        pass

    def close(self) -> None:
        pass


class Producer:
    """In place of `confluent_kafka.Producer`."""

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        return 0

    def poll(self, timeout: float = 0) -> int:
        return 0

    def flush(self, timeout: float = 0) -> int:
        return 0


class Topics(TopicManager):  # type: ignore[misc]
    """Knows what a broker would say of the topic."""

    def _fetch_topic(self, topic: Topic) -> Topic:
        found = Topic(name=topic.name)
        found.broker_config = TopicConfig(1, 1, {"retention.ms": "604800000", "retention.bytes": "-1"})
        return found


class Decoded(Deserializer):  # type: ignore[misc]
    def __call__(self, value: Any, ctx: Any) -> Any:
        return value


def mapped(bids: Any) -> Any:
    return bids.apply(lambda bid: (bid[0], bid[1], bid[2] * 908 // 1000, bid[3]))


def counted(bids: Any) -> Any:
    def more(bid: Bid, state: State) -> tuple[int, int, int]:
        n, total = state.get("held", (0, 0))
        now = n + 1, total + bid[2]
        state.set("held", now)
        return bid[0], *now

    return bids.apply(more, stateful=True)


def windowed(bids: Any) -> Any:
    windows = bids.tumbling_window(60_000, grace_ms=10_000).agg(n=Count()).final(closing_strategy="partition")
    return windows.apply(
        lambda found, key, *_: (int(key), found["start"] // 60_000 - FIRST_MINUTE, found["n"]), metadata=True
    )


JOBS: dict[str, Callable[[Any], Any]] = {"map": mapped, "count": counted, "window": windowed}
ANSWERS: dict[str, Callable[[list[Any]], Iterable[Row]]] = {
    "map": lambda rows: [(len(rows), sum(row[2] for row in rows))],
    "count": lambda rows: list({row[0]: row for row in rows}.values()),
    "window": lambda rows: rows,
}


def run(apps: Iterator[Application], job: str, kept: list[Any]) -> Iterable[Row]:
    """The next application: one that has run has come to the end of its messages."""
    next(apps).run()
    return ANSWERS[job](kept) if kept else []


def made(asked: Asked, messages: list[Message], folder: str, kept: list[Any]) -> Application:
    where = {"broker_address": "none", "state_dir": folder, "consumer_group": "bids"}
    topics = Topics(TopicAdmin(broker_address="none"), consumer_group="bids")
    app = Application(**where, loglevel="ERROR", use_changelog_topics=False, topic_manager=topics)
    app._consumer._inner_consumer = Consumer(messages, app.stop)
    app._producer._producer._inner_producer = Producer()
    out = JOBS[asked.job](app.dataframe(app.topic(TOPIC, value_deserializer=Decoded())))
    if asked.answer:
        out.update(kept.append)
    return app


def times(at: pa.Array) -> Sequence[Any]:
    return at.cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]


def main() -> None:
    this = asked()
    bids = read_bids(this, times)
    messages = [Message(offset, str(bid[0]).encode(), bid) for offset, bid in enumerate(bids)]
    with tempfile.TemporaryDirectory(prefix="penstock-bench-", dir=this.events.parent) as folder:
        kept: list[Any] = []
        apps = iter([made(this, messages, f"{folder}/{each}", kept) for each in range(this.times)])
        measured(this, len(bids), lambda: run(apps, this.job, kept))


if __name__ == "__main__":
    main()
