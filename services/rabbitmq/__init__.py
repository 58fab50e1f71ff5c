"""RabbitMQ, as tests and `make rabbitmq` start it."""

from services.rabbitmq.broker import Broker, broker_in

__all__ = ["Broker", "broker_in"]
