"""E-mails: a view's changes reach people by SMTP, many in one message, not too often, at least once."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword

from penstock.errors import PenstockError
from penstock.log import Log
from penstock.model import Pipeline
from penstock.views.sinks import delivering
from services.processes import free_ports
from tests.app.receivers import made_certificate
from tests.app.sinking import VIEWS, declared, sinking, soon
from tests.texts import assert_golden, refused
from tests.views.shop import Shop, spend

PASSWORD = "hunter2-S3cret"


@dataclass
class Mailbox:
    """What a mail server has taken; `answer` is what it says to a message."""

    port: int
    answer: str = "250 OK"
    to: list[list[str]] = field(default_factory=list)
    mails: list[EmailMessage] = field(default_factory=list)
    was_tls: list[bool] = field(default_factory=list)

    async def handle_DATA(self, _server: Any, session: Any, envelope: Envelope) -> str:  # noqa: N802 (aiosmtpd's)
        if self.answer.startswith("250"):
            assert isinstance(envelope.content, bytes)
            made = message_from_bytes(envelope.content, policy=policy.default)
            assert isinstance(made, EmailMessage)
            self.mails.append(made)
            self.to.append(envelope.rcpt_tos)
            self.was_tls.append(session.ssl is not None)
        return self.answer

    @property
    def texts(self) -> list[str]:
        return [mail.get_content() for mail in self.mails]


@contextmanager
def mail_server(port: int | None = None, **how: Any) -> Iterator[Mailbox]:
    mailbox = Mailbox(port or free_ports(1)[0])
    controller = Controller(mailbox, hostname="127.0.0.1", port=mailbox.port, **how)
    controller.start()
    try:
        yield mailbox
    finally:
        controller.stop()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path / "log") as log:
        yield log


@pytest.fixture
def shop(log: Log) -> Shop:
    shop = Shop(log, views=VIEWS)
    shop.announce()
    return shop


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    with mail_server() as mailbox:
        yield mailbox


def to(port: int, more: str = "", *, scheme: str = "smtp", user: str = "", words: str = "") -> Pipeline:
    smtp = f"{scheme}://{user}localhost:{port}?from=alerts@example.org{words}"
    return declared(f"email = 'ann@example.org, bob@example.org'{more}", f"SET smtp = '{smtp}';")


def test_the_changes_of_a_frame_are_one_mail(log: Log, shop: Shop, mailbox: Mailbox, tmp_path: Path) -> None:
    with sinking(log, tmp_path, to(mailbox.port)) as told:
        frame = shop.batch(spend=[(None, spend("Bern", 1)), (None, spend("Zürich", 1)), (None, spend("Zug", 1))])
        assert soon(lambda: len(mailbox.mails) == 1)
        shop.batch(
            spend=[(spend("Bern", 1), spend("Bern", 2)), (spend("Zug", 1), None), (None, spend("a\nb\u2028", 1))]
        )
    first, second = mailbox.mails
    assert (first["subject"], first["from"]) == ("[shop] spend: 3 changes", "alerts@example.org")
    assert first["auto-submitted"] == "auto-generated" and first["message-id"] != second["message-id"]
    assert mailbox.to[0] == ["ann@example.org", "bob@example.org"]
    assert mailbox.texts[0].splitlines()[0].startswith(f"3 changes of view spend of pipeline shop, up to frame {frame}")
    assert_golden("app/mail", "\n".join(mailbox.texts[1].splitlines()[2:]))
    assert told == []


def test_mails_are_not_sent_more_often_than_is_said(log: Log, shop: Shop, mailbox: Mailbox, tmp_path: Path) -> None:
    with sinking(log, tmp_path, to(mailbox.port, ", email_every = '1 hour'")):
        shop.batch(spend=[(None, spend("Bern", 1))])
        assert soon(lambda: len(mailbox.mails) == 1)
        for city in ("Zug", "Genf", "Basel"):
            shop.batch(spend=[(None, spend(city, 1))])
    assert [mail["subject"] for mail in mailbox.mails] == ["[shop] spend: 1 change", "[shop] spend: 3 changes"]


def test_of_very_many_changes_the_first_are_shown(log: Log, shop: Shop, mailbox: Mailbox, tmp_path: Path) -> None:
    with sinking(log, tmp_path, to(mailbox.port)):
        shop.batch(spend=[(None, spend(f"{at}", 1)) for at in range(1250)])
    lines = mailbox.texts[0].splitlines()
    assert mailbox.mails[0]["subject"] == "[shop] spend: 1,250 changes"
    assert sum(line.startswith("+ ") for line in lines) == 100 and lines[-1] == "and 1,150 more"


def test_a_server_that_was_away_gets_what_it_has_missed(log: Log, shop: Shop, tmp_path: Path) -> None:
    port = free_ports(1)[0]
    with sinking(log, tmp_path, to(port), to_the_end=False) as told:
        shop.batch(spend=[(None, spend("Bern", 1))])
        assert soon(lambda: bool(told))
        shop.batch(spend=[(None, spend("Zug", 1))])
    assert [error.primary for error in told] == [f'the email of view "spend" does not reach localhost:{port}']
    with mail_server(port) as mailbox, sinking(log, tmp_path, to(port)):
        pass
    assert [mail["subject"] for mail in mailbox.mails] == ["[shop] spend: 2 changes"]


def test_a_mail_that_is_sent_twice_has_the_same_id(log: Log, shop: Shop, mailbox: Mailbox, tmp_path: Path) -> None:
    memory = tmp_path / ".penstock/sinks/spend.email.json"
    with sinking(log, tmp_path, to(mailbox.port), to_the_end=False):
        before = memory.read_bytes()
    shop.batch(spend=[(None, spend("Bern", 1))])
    for _ in range(2):
        with sinking(log, tmp_path, to(mailbox.port)):
            pass
        memory.write_bytes(before)  # as if the process had died before it could write it down
    assert mailbox.mails[0].as_bytes() == mailbox.mails[1].as_bytes()


def test_a_mail_that_nobody_takes_becomes_a_dead_letter(
    log: Log, shop: Shop, mailbox: Mailbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivering, "FIRST_SECONDS", 1e-9)
    mailbox.answer = "550 no such thing"
    with sinking(log, tmp_path, to(mailbox.port), to_the_end=False) as told:
        shop.batch(spend=[(None, spend("Bern", 1))])
        assert soon(lambda: "gives up" in told[-1].primary if told else False)
    (letter,) = [entry.value for entry in log.read("shop.spend.email.dead-letters")]
    assert isinstance(letter, dict)
    assert (letter["attempts"], letter["reason"]) == (20, "It answered 550 no such thing")
    assert "Subject: [shop] spend: 1 change" in letter["body"]


def checked(_server: Any, _session: Any, _envelope: Any, _mechanism: str, login: LoginPassword) -> AuthResult:
    return AuthResult(success=login == LoginPassword(b"ann", PASSWORD.encode()), handled=False)


@pytest.mark.filterwarnings("ignore:Requiring AUTH")  # it does not see that the line is TLS from the first byte on
@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
def test_who_logs_in_does_so_over_tls(
    scheme: str, log: Log, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made_certificate(tmp_path))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
    how: dict[str, Any] = {"tls_context" if scheme == "smtp" else "ssl_context": context}
    with mail_server(authenticator=checked, auth_required=True, auth_require_tls=scheme == "smtp", **how) as mailbox:
        pipeline = to(mailbox.port, scheme=scheme, user="ann@")
        monkeypatch.setenv("PENSTOCK_SMTP_PASSWORD", f"not {PASSWORD}")
        with sinking(log, tmp_path, pipeline, to_the_end=False) as told:
            shop.batch(spend=[(None, spend("Bern", 1))])
            assert soon(lambda: bool(told))
        assert "535" in told[0].detail and PASSWORD not in str(told[0]) and not mailbox.mails
        monkeypatch.setenv("PENSTOCK_SMTP_PASSWORD", PASSWORD)
        with sinking(log, tmp_path, pipeline):
            pass
    assert mailbox.was_tls == [scheme == "smtp"]  # what is TLS from the first byte on, aiosmtpd does not call so


def test_a_password_does_not_go_over_a_line_that_others_can_read(
    log: Log, shop: Shop, mailbox: Mailbox, tmp_path: Path
) -> None:
    pipeline = to(mailbox.port, user=f"ann:{PASSWORD}@")
    with refused("app/mail-without-tls", port=mailbox.port), sinking(log, tmp_path, pipeline):
        shop.batch(spend=[(None, spend("Bern", 1))])
    assert not mailbox.mails


def test_who_need_not_log_in_need_not_have_tls(log: Log, shop: Shop, mailbox: Mailbox, tmp_path: Path) -> None:
    with sinking(log, tmp_path, to(mailbox.port, words="&starttls=never")):
        shop.batch(spend=[(None, spend("Bern", 1))])
    assert mailbox.was_tls == [False]


def test_troubles_of_one_sink_do_not_stop_another(log: Log, shop: Shop, mailbox: Mailbox, tmp_path: Path) -> None:
    (tmp_path / "secrets").write_text("none\n")
    hook = ", webhook = 'http://127.0.0.1:9/hook', webhook_secrets = 'secrets'"
    told: list[PenstockError]
    with sinking(log, tmp_path, to(mailbox.port, hook), to_the_end=False) as told:
        shop.batch(spend=[(None, spend("Bern", 1))])
        assert soon(lambda: len(mailbox.mails) == 1 and bool(told))
    assert 'line 1 of "' in told[0].primary
