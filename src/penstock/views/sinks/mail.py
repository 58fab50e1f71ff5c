"""Mail: changes of a view go to people, many in one message, and not more often than is said.

A message names the first changes and counts the others. It is delivered when the server has taken it for all whom it
takes mail for. Its Message-ID follows from the changes that it tells of: sent twice, it is the same.
"""

import json
import re
import smtplib
import ssl
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from hashlib import blake2b

from penstock.errors import ViewError
from penstock.views.sinks.delivering import Letter, Parcel, Undelivered
from penstock.views.sinks.news import News, Source, json_row, time_text

ATTEMPTS = 20
SHOWN = 100
LONGEST = 2000
"""So many changes stand in a message, and so many characters of each."""
ENDS = re.compile("[\x7f-\x9f\u2028\u2029]")
TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, repr=False)
class Server:
    """Who takes mails; `starttls` is always, offered or never."""

    host: str
    port: int
    tls: bool
    starttls: str
    user: str
    password: str


class Mail:
    """A courier by SMTP. A connection for each message: there are few."""

    kind = "email"
    attempts = ATTEMPTS

    def __init__(
        self,
        source: Source,
        server: Server,
        *,
        sender: str,
        to: Sequence[str],
        every: timedelta,
    ) -> None:
        self.every = every
        self.where = f"{server.host}:{server.port}"
        self.address = f"{self.where} {' '.join(to)}"
        self._source = source
        self._pipeline = source.pipeline
        self._server = server
        self._sender = sender
        self._to = list(to)

    def parcels(self, news: Iterable[News]) -> Iterator[Parcel]:
        """One, with all that there is."""
        first = last = None
        shown: list[str] = []
        count = 0
        for each in news:
            first, last, count = first or each, each, count + 1
            shown += [_line(each)] if count <= SHOWN else []
        if first is not None and last is not None:
            at = (first.identity(self._pipeline), last.identity(self._pipeline))
            identity = blake2b(repr(at).encode(), digest_size=16).hexdigest()
            yield Parcel(identity, self._text(identity, last, shown, count), first, last.goes_on)

    def deliver(self, letter: Letter) -> None:
        try:
            with self._connected() as line:
                line.sendmail(self._sender, self._to, letter.body.encode())
        except smtplib.SMTPRecipientsRefused as error:
            raise Undelivered(_answer(*next(iter(error.recipients.values())))) from error
        except smtplib.SMTPResponseException as error:
            raise Undelivered(_answer(error.smtp_code, error.smtp_error)) from error
        except smtplib.SMTPNotSupportedError as error:
            raise self._unsafe(str(error)) from error
        except (OSError, smtplib.SMTPException) as error:
            told = getattr(error, "strerror", None)
            raise Undelivered(f"{type(error).__name__}: {told}" if told else type(error).__name__) from error

    def close(self) -> None:
        pass

    def _connected(self) -> smtplib.SMTP:
        server, context = self._server, ssl.create_default_context()
        if server.tls:
            line: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, timeout=TIMEOUT_SECONDS, context=context)
        else:
            line = smtplib.SMTP(server.host, server.port, timeout=TIMEOUT_SECONDS)
        try:
            line.ehlo()
            offered = server.starttls == "offered" and line.has_extn("starttls")
            if not server.tls and (server.starttls == "always" or offered):
                line.starttls(context=context)
                line.ehlo()
            if server.user:
                line.login(server.user, server.password)
        except BaseException:
            line.close()
            raise
        return line

    def _text(self, identity: str, last: News, shown: Sequence[str], count: int) -> str:
        view, at = last.view.name, self._source.appended_at(last.position.frame)
        changes = f"{count:,} change{'' if count == 1 else 's'}"
        message = EmailMessage(policy=SMTP)
        message["Subject"] = f"[{self._pipeline}] {view}: {changes}"
        message["From"] = self._sender
        message["To"] = ", ".join(self._to)
        message["Date"] = format_datetime(at)
        message["Message-ID"] = f"<{identity}@penstock>"
        message["Auto-Submitted"] = "auto-generated"
        head = f"{changes} of view {view} of pipeline {self._pipeline}, up to frame {last.position.frame}, "
        more = [f"and {count - len(shown):,} more"] if count > len(shown) else []
        text = "\n".join([f"{head}{time_text(at)}.", "", *shown, *more, ""])
        message.set_content(text.encode(errors="backslashreplace").decode(), cte="quoted-printable")
        return message.as_string()

    def _unsafe(self, said: str) -> ViewError:
        return ViewError(
            f"mails cannot be sent over {self.where}",
            detail=f"{said.rstrip('.')}.",
            hint="Let the server offer it, use smtps://, or write ?starttls=never where nobody can listen.",
        )


def _line(news: News) -> str:
    old, new = (_json(json_row(news.view, row)) for row in (news.old, news.new))
    match news.kind:
        case "inserted":
            text = f"+ {new}"
        case "deleted":
            text = f"- {old}"
        case _:
            text = f"* {new}, before {old}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _json(row: object) -> str:
    """On one line, whatever is taken for the end of one."""
    text = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
    return ENDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _answer(code: int, text: bytes | str) -> str:
    said = text.decode(errors="replace") if isinstance(text, bytes) else text
    plain = "".join(each if each.isprintable() else " " for each in said)  # a terminal shows it
    return f"It answered {code} {' '.join(plain.split())[:200]}".rstrip()
