"""Redis from a terminal: `make redis`, `make redis-stop`.

python -m services.redis start    starts it, fetched from Debian unless it is installed; or says that it runs already
python -m services.redis stop     ends what was started so; its data stays in .services
"""

import sys

from services.jars import CACHE
from services.redis.server import Server, server_in
from services.terminal import command, say, start, stop

NAME, PORT, FOLDER = "Redis", 6379, CACHE / "redis"


def _ours() -> Server:
    return server_in(FOLDER, port=PORT, say=say)


def _start() -> None:
    found = _ours()
    start(NAME, found, lambda: found.url)


if __name__ == "__main__":
    sys.exit(command(sys.argv[1:], __doc__, start=_start, stop=lambda: stop(NAME, FOLDER / "server.pid", _ours)))
