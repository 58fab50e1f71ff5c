"""Following: records as they come, until somebody says stop."""

from collections.abc import Callable, Iterator, Mapping

from confluent_kafka import KafkaError

from penstock.log.kafka.client import GATHERED, Client
from penstock.log.kafka.reading import Bad, batch_of
from penstock.log.kafka.records import KafkaEntry, entries_of
from penstock.log.kafka.waiting import refusal
from penstock.log.topic import Topic

POLL_SECONDS = 0.05


def followed(
    client: Client,
    name: str,
    begin: Mapping[int, int],
    topic: Callable[[], Topic],
    *,
    stop: Callable[[], bool],
    bad: Bad,
) -> Iterator[KafkaEntry]:
    """Entries of the partitions from where they begin. `topic` is asked after each look: its columns may have grown."""
    doing = f'following "{name}"'
    with client.consumer() as consumer:
        client.assign(consumer, name, begin)
        spell = client.waiting.spell(doing)
        while not stop():
            first = consumer.poll(POLL_SECONDS)
            found = [] if first is None else [first, *consumer.consume(GATHERED, timeout=0)]
            for message in found:
                error = message.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    if error.fatal():
                        raise refusal(doing, error)
                    spell.go_on(error)
            messages = [message for message in found if message.error() is None]
            if messages:
                spell.end()
                now = topic()
                yield from entries_of(now, batch_of(now, messages, bad))
