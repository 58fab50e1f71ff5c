"""PostgreSQL from a terminal: `make postgres`, `make postgres-stop`.

python -m services.postgres start    starts it, fetched from Debian unless it is installed; or says that it runs already
python -m services.postgres stop     ends what was started so; its data stays in .services
"""

import sys

from services.jars import CACHE
from services.postgres.server import Server, server_in
from services.terminal import command, say, start, stop

NAME, PORT, FOLDER = "PostgreSQL", 5432, CACHE / "postgres"


def _ours() -> Server:
    return server_in(FOLDER, port=PORT, say=say)


def _start() -> None:
    found = _ours()
    start(NAME, found, lambda: found.url())


if __name__ == "__main__":
    sys.exit(command(sys.argv[1:], __doc__, start=_start, stop=lambda: stop(NAME, FOLDER / "server.pid", _ours)))
