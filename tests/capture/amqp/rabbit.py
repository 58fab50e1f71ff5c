"""RabbitMQ as tests use it: queues of a name of their own, messages in, messages out."""

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import amqp

from penstock.capture.amqp import Consuming, Intake, Publishing, Routing, parse_address
from penstock.capture.amqp.sorting import Rules
from penstock.capture.amqp.tally import Tally
from penstock.log.protocol import AnyLog
from services.rabbitmq import Broker

SCHEMA = "id BIGINT NOT NULL, name STRING, price DECIMAL(10,2)"


class Rabbit:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.url = broker.url

    def queue(self, **arguments: Any) -> str:
        """A new queue that outlives the broker's end."""
        name = f"q-{uuid.uuid4().hex[:12]}"
        with self.broker.connection() as connection:
            connection.channel().queue_declare(name, durable=True, auto_delete=False, arguments=arguments or None)
        return name

    def exchange(self, *queues: str, key: str = "#") -> str:
        """A new exchange, to which these queues are bound."""
        name = f"x-{uuid.uuid4().hex[:12]}"
        with self.broker.connection() as connection:
            channel = connection.channel()
            channel.exchange_declare(name, "topic", durable=True, auto_delete=False)
            for queue in queues:
                channel.queue_bind(queue, name, routing_key=key)
        return name

    def send(self, queue: str, bodies: Mapping[str, Any] | Sequence[Any], **properties: Any) -> None:
        """Bodies by message id, or without any; what is not bytes goes as JSON. Confirmed when it returns."""
        named = bodies.items() if isinstance(bodies, Mapping) else [(None, body) for body in bodies]
        with self.broker.connection() as connection:
            channel = connection.channel()
            channel.confirm_select()
            confirmed: list[int] = []
            channel.events["basic_ack"].add(lambda tag, _multiple: confirmed.append(tag))
            for identity, body in named:
                told = properties | ({"message_id": identity} if identity is not None else {})
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                channel.basic_publish(amqp.Message(data, delivery_mode=2, **told), routing_key=queue)
            while max(confirmed, default=0) < len(bodies):
                connection.drain_events(timeout=10)

    def waiting(self, queue: str) -> int:
        with self.broker.connection() as connection:
            return int(connection.channel().queue_declare(queue, passive=True).message_count)

    def received(self, queue: str) -> list[amqp.Message]:
        """All messages of the queue, which is empty then."""
        with self.broker.connection() as connection:
            channel = connection.channel()
            channel.auto_decode = False
            found = []
            while (message := channel.basic_get(queue, no_ack=True)) is not None:
                found.append(message)
            return found


def row(number: int) -> dict[str, Any]:
    return {"id": number, "name": f"thing {number}", "price": "1.50"}


def intake(queue: str, topic: str = "things", **options: Any) -> Intake:
    rules = {name: options.pop(name) for name in ("id_header", "strict") if name in options}
    return Intake(queue, topic, options.pop("name", queue), Rules(queue, **rules), **options)


def consumed(log: AnyLog, url: str, taking: Intake, **told: Any) -> Tally:
    """Takes in all that is in the queue now."""
    doing: dict[str, Any] = {"say": lambda _: None, "stop": lambda: False, "told": lambda _: None} | told
    bridge = Consuming(log, parse_address(url), taking, **doing)
    bridge.run(once=True)
    return bridge.tally


def published(log: AnyLog, url: str, topic: str, routing: Routing, **told: Any) -> Tally:
    """Sends all that is in the topic now."""
    doing: dict[str, Any] = {"say": lambda _: None, "stop": lambda: False, "told": lambda _: None, "name": "test"}
    doing |= told
    bridge = Publishing(log, parse_address(url), topic, routing, **doing)
    bridge.run(once=True)
    return bridge.tally


def letters(log: AnyLog, name: str) -> list[Any]:
    return [entry.value for entry in log.read(f"amqp.{name}.dead-letters")]


def ids(log: AnyLog, topic: str = "things") -> list[int]:
    return [entry.value["id"] for entry in log.read(topic)]  # type: ignore[index,call-overload]
