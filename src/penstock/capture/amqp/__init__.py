"""A bridge to RabbitMQ: a queue becomes a topic, a topic goes to an exchange. Needs the extra `amqp`."""

from penstock.errors import CaptureError

try:
    from penstock.capture.amqp.consuming import Consuming, Intake
    from penstock.capture.amqp.publishing import Publishing
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "amqp":
        raise
    raise CaptureError(
        "RabbitMQ's client is not installed",
        detail="There is no module amqp.",
        hint="pip install 'penstock[amqp]'",
    ) from error

from penstock.capture.amqp.address import Address, parse_address
from penstock.capture.amqp.encoding import Routing
from penstock.capture.amqp.tally import Tally

__all__ = ["Address", "Consuming", "Intake", "Publishing", "Routing", "Tally", "parse_address"]
