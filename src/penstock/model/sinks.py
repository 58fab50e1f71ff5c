"""Where the changes of a view go, besides its store: to an address of HTTP, to people by e-mail, to a topic of Kafka.

All values here are addresses that may hold secrets: as text they have none.
"""

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

from penstock.errors import ModelError

HTTP = ("https", "http")
SMTP = {"smtp": 587, "smtps": 465}
STARTTLS = ("always", "offered", "never")
MAILBOX = re.compile(r"[^\s@,;<>()\"\\]+@[^\s@,;<>()\"\\]+")
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, repr=False)
class Webhook:
    """An address to which changes are posted. `site` is what may be shown of it: paths, too, hold secrets often."""

    url: str

    @property
    def site(self) -> str:
        found = urlsplit(self.url)
        return f"{found.scheme}://{found.netloc.rpartition('@')[2]}"

    def __str__(self) -> str:
        found = urlsplit(self.url)
        user, at, host = found.netloc.rpartition("@")
        query = "***" if found.query else ""
        return urlunsplit((found.scheme, f"{'***' if user else ''}{at}{host}", found.path, query, ""))

    def __repr__(self) -> str:
        return f"Webhook({self.site!r})"


@dataclass(frozen=True, repr=False)
class Smtp:
    """A server that takes e-mails. `tls` is from the first byte on; else as `starttls` says: always, where the server
    offers it, or never.
    """

    host: str
    port: int
    tls: bool = False
    starttls: str = "offered"
    user: str = ""
    password: str = ""
    sender: str = ""

    def __str__(self) -> str:
        user = f"{self.user}:***@" if self.password else f"{self.user}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        start = self.starttls if not self.tls and self.starttls != _starttls(self.user) else ""
        words = "&".join(f"{word}={value}" for word, value in (("from", self.sender), ("starttls", start)) if value)
        return f"{'smtps' if self.tls else 'smtp'}://{user}{host}:{self.port}" + (f"?{words}" if words else "")

    def __repr__(self) -> str:
        return f"Smtp({str(self)!r})"


@dataclass(frozen=True)
class KafkaTopic:
    """A topic on the cluster of these brokers."""

    servers: str
    topic: str

    def __str__(self) -> str:
        return f"kafka://{self.servers}/{self.topic}"


def webhook_of(text: str) -> Webhook:
    found = _split(text)
    if found is None or found.scheme not in HTTP or not found.hostname or found.fragment or not text.isascii():
        raise ModelError("this is no address for webhooks", hint="Write https://HOST/PATH.")
    return Webhook(text)


def smtp_of(text: str) -> Smtp:
    """`smtp://USER@HOST:587?from=MAILBOX&starttls=always`, or `smtps://USER@HOST:465`"""
    hint = "Write smtp://USER@HOST:PORT or smtps://USER@HOST:PORT, the password in PENSTOCK_SMTP_PASSWORD."
    found = _split(text)
    if found is None or found.scheme not in SMTP or not found.hostname or found.path.strip("/") or found.fragment:
        raise ModelError("this is no address of a mail server", hint=hint)
    words = dict(parse_qsl(found.query, keep_blank_values=True))
    user = unquote(found.username or "")
    sender, starttls = words.pop("from", ""), words.pop("starttls", _starttls(user))
    if words or starttls not in STARTTLS or (sender and not _is_mailbox(sender)):
        raise ModelError(
            "this is no address of a mail server",
            detail=f"It may end with ?from=MAILBOX, and with starttls={', starttls='.join(STARTTLS)}.",
            hint=hint,
        )
    port, password = found.port or SMTP[found.scheme], unquote(found.password or "")
    return Smtp(found.hostname, port, found.scheme == "smtps", starttls, user, password, sender)


def mailboxes_of(text: str) -> tuple[str, ...]:
    """'ann@example.org, bob@example.org'  =>  both"""
    found = tuple(each.strip() for each in text.split(","))
    for each in found:
        if not each.isascii():  # only some servers take others, and one cannot know which
            raise ModelError(
                f'"{each}" has letters that not every mail server takes',
                hint="Write a mailbox in ASCII; a domain has such a form too: xn--...",
            )
        if not MAILBOX.fullmatch(each):
            raise ModelError(f'"{each}" is no mailbox', hint="Write 'ann@example.org, bob@example.org'.")
    return found


def _is_mailbox(text: str) -> bool:
    return text.isascii() and MAILBOX.fullmatch(text) is not None


def kafka_topic_of(text: str) -> KafkaTopic:
    found = _split(text)
    topic = found.path[1:] if found else ""
    if found is None or found.scheme != "kafka" or not found.netloc or "@" in found.netloc or found.query:
        raise ModelError("this is no topic of Kafka", hint="Write kafka://HOST:PORT,HOST:PORT/TOPIC.")
    if not TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise ModelError(f'"{topic}" cannot be a topic of Kafka', hint="Write kafka://HOST:PORT,HOST:PORT/TOPIC.")
    return KafkaTopic(found.netloc, topic)


def _starttls(user: str) -> str:
    """Nobody's password goes over a line that others can read, unless that was said."""
    return "always" if user else "offered"


def _split(text: str) -> SplitResult | None:
    try:
        found = urlsplit(text)
        _ = found.port if "," not in found.netloc else None  # raises where it is no number
    except ValueError:
        return None
    is_plain = text.startswith(f"{found.scheme}://") and not re.search(r"[\x00-\x20\x7f]", text)
    return found if is_plain else None
