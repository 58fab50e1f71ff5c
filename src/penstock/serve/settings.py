"""Settings: where the server listens, who may ask, and how much.

On loopback everybody on the machine may ask. Elsewhere only who has a token; without tokens the server does not start.
"""

import hashlib
import ipaddress
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from penstock.errors import ServeError

Scope = Literal["read", "write"]
Form = Literal["text", "json"]
DEFAULT = "127.0.0.1:8780"
SHORTEST = 16
"""Shorter tokens can be guessed."""


@dataclass(frozen=True)
class Limits:
    """The largest body, requests of one client in a second, seconds for an answer, rows in one, and how many may follow
    changes at once.
    """

    body_bytes: int = 8 << 20
    rate: float = 10_000
    seconds: float = 60
    rows: int = 100_000
    followers: int = 2_000


@dataclass(frozen=True)
class Settings:
    """`tokens`: the hash of each token, and what it is good for; empty: nobody needs one."""

    host: str = "127.0.0.1"
    port: int = 8780
    tokens: Mapping[bytes, frozenset[Scope]] = field(default_factory=dict)
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        if not self.tokens and not is_loopback(self.host):
            raise ServeError(
                f'who asks at "{self.host}" needs a token, and there are none',
                detail="Only on loopback (127.0.0.1, ::1, localhost) everybody may ask.",
                hint="Write a file with lines such as: read,write LONG-SECRET; and give it as --tokens FILE",
            )

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def is_loopback(host: str) -> bool:
    """Whether every address of the host is one that only this machine reaches."""
    try:
        found = {each[4][0] for each in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError) as error:
        raise ServeError(f'"{host}" has no address', detail=f"{error}.") from None
    return bool(found) and all(ipaddress.ip_address(str(each).partition("%")[0]).is_loopback for each in found)


def address_of(text: str) -> tuple[str, int]:
    """`"HOST:PORT"`, `":PORT"`, `"[::1]:PORT"`  =>  host and port"""
    host, sign, port = text.rpartition(":")
    if not sign or not port.isdecimal() or int(port) > 65535:
        raise ServeError(f'"{text}" is no address', hint=f"Write HOST:PORT, for instance {DEFAULT}")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def tokens_in(file: Path) -> dict[bytes, frozenset[Scope]]:
    """The tokens in a file: a line for each, `read TOKEN`, `write TOKEN` or `read,write TOKEN`; `#` begins a remark."""
    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ServeError(f'the tokens in "{file}" cannot be read', detail=f"{type(error).__name__}.") from None
    found: dict[bytes, frozenset[Scope]] = {}
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith("#"):
            token, scopes = _token(f"{file}, line {number}", line.split())
            found[hashed(token)] = scopes
    if not found:
        raise ServeError(f'there are no tokens in "{file}"', hint="Write lines such as: read,write LONG-SECRET")
    return found


def hashed(token: str) -> bytes:
    """What is kept of a token, and compared: how long that takes says nothing about it."""
    return hashlib.sha256(token.encode(errors="surrogateescape")).digest()


def _token(spot: str, words: list[str]) -> tuple[str, frozenset[Scope]]:
    scopes = frozenset(words[0].split(","))
    if len(words) != 2 or not scopes <= set(get_args(Scope)):
        raise ServeError(f"{spot} is no token", hint="Write: read TOKEN, write TOKEN, or read,write TOKEN")
    if len(words[1]) < SHORTEST:
        raise ServeError(f"{spot}: the token is too short", detail=f"It has fewer than {SHORTEST} characters.")
    return words[1], frozenset(scope for scope in get_args(Scope) if scope in scopes)
