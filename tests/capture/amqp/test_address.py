"""Addresses of brokers: what is left out, what is refused, and that no password is shown."""

import pytest

from penstock.capture.amqp import Address, parse_address
from penstock.errors import CaptureError
from tests.texts import refused


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("amqp://", Address("localhost", 5672)),
        ("amqp://h", Address("h", 5672)),
        ("amqp://ann:s%2Fx@h:99/a%2Fb", Address("h", 99, "ann", "s/x", "a/b")),
        ("amqps://h/", Address("h", 5671, secure=True)),
    ],
)
def test_an_address_is_read(text: str, wanted: Address) -> None:
    assert parse_address(text) == wanted


def test_what_is_no_address_is_refused_without_being_shown() -> None:
    with refused("capture/bad-address"):
        parse_address("http://ann:hunter2@h")


@pytest.mark.parametrize("text", ["h:5672", "amqp://ann:hunter2@h:port", "amqp://ann:hunter2@h/x?heartbeat=3"])
def test_no_password_is_shown(text: str) -> None:
    with pytest.raises(CaptureError) as error:
        parse_address(text)
    assert "hunter2" not in str(error.value)
    assert "hunter2" not in repr(parse_address("amqp://ann:hunter2@h"))
