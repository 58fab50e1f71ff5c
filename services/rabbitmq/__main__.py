"""RabbitMQ from a terminal: `make rabbitmq`, `make rabbitmq-stop`.

python -m services.rabbitmq start    fetches it from Debian and starts it; nothing happens if it runs already
python -m services.rabbitmq stop     ends what was started so; its durable queues stay
"""

import sys

from services.jars import CACHE
from services.rabbitmq.broker import Broker, broker_in
from services.terminal import command, say, start, stop

NAME, PORT, FOLDER = "RabbitMQ", 5672, CACHE / "rabbitmq"


def _ours() -> Broker:
    return broker_in(FOLDER, port=PORT, say=say)


def _start() -> None:
    found = _ours()
    start(NAME, found, lambda: found.url)


if __name__ == "__main__":
    sys.exit(command(sys.argv[1:], __doc__, start=_start, stop=lambda: stop(NAME, FOLDER / "broker.pid", _ours)))
