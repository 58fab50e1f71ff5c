"""RabbitMQ from a terminal: `make rabbitmq`, `make rabbitmq-stop`.

python -m services.rabbitmq start    fetches it from Debian and starts it; nothing happens if it runs already
python -m services.rabbitmq stop     ends what was started so; its durable queues stay
"""

import sys
from collections.abc import Sequence

from services.jars import CACHE, ServiceError
from services.rabbitmq.broker import Broker, broker_in

PORT = 5672


def main(words: Sequence[str]) -> int:
    command = words[0] if words else ""
    try:
        if command == "start":
            _start()
        elif command == "stop":
            _stop()
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except ServiceError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _ours() -> Broker:
    return broker_in(CACHE / "rabbitmq", port=PORT, say=lambda text: print(text, flush=True))


def _start() -> None:
    broker = _ours()
    before = broker.pid() is not None
    if not before:
        print("starting RabbitMQ", flush=True)
    broker.start()
    print(f"RabbitMQ {'runs already' if before else 'is ready'}: {broker.url}")


def _stop() -> None:
    if not (CACHE / "rabbitmq" / "broker.pid").exists():
        print("RabbitMQ does not run")
        return
    broker = _ours()
    running = broker.pid() is not None
    broker.stop()
    print("RabbitMQ is stopped" if running else "RabbitMQ does not run")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
