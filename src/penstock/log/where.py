"""Where a log is: in a folder of this machine, or on Kafka, `kafka://HOST:PORT,HOST:PORT/PREFIX`."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from penstock.errors import LogError, without_secrets

SCHEME = "kafka"


@dataclass(frozen=True)
class OnKafka:
    """A cluster, by some of its brokers, and the prefix of the log's names."""

    servers: str
    prefix: str = ""

    def __str__(self) -> str:
        return f"{SCHEME}://{self.servers}/{self.prefix}"


Where = Path | OnKafka


def where_of(text: str | Path) -> Where:
    """The place that is meant; every text but an address of Kafka is a path."""
    if isinstance(text, Path) or not text.startswith(f"{SCHEME}:"):
        return Path(text)
    found = urlsplit(text)
    if not found.netloc or found.query or found.fragment or "/" in found.path[1:] or "@" in found.netloc:
        raise LogError(
            f'"{without_secrets(text)}" is no log on Kafka',
            hint="Write kafka://HOST:PORT,HOST:PORT/PREFIX; user and password belong into the settings of the client.",
        )
    return OnKafka(found.netloc, found.path[1:])
