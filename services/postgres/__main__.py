"""PostgreSQL from a terminal: `make postgres`, `make postgres-stop`.

python -m services.postgres start    starts it, fetched from Debian unless it is installed; or says that it runs already
python -m services.postgres stop     ends what was started so; its data stays in .services
"""

import sys
from collections.abc import Sequence

from services.jars import CACHE, ServiceError
from services.postgres.server import Server, server_in

PORT = 5432


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


def _ours() -> Server:
    return server_in(CACHE / "postgres", port=PORT, say=lambda text: print(text, flush=True))


def _start() -> None:
    server = _ours()
    before = server.pid() is not None
    if not before:
        print("starting PostgreSQL", flush=True)
    server.start()
    print(f"PostgreSQL {'runs already' if before else 'is ready'}: {server.url()}")


def _stop() -> None:
    if not (CACHE / "postgres" / "server.pid").exists():
        print("PostgreSQL does not run")
        return
    server = _ours()
    running = server.pid() is not None
    server.stop()
    print("PostgreSQL is stopped" if running else "PostgreSQL does not run")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
