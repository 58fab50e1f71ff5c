"""Signing as Standard Webhooks 1.0.0 says: HMAC-SHA256 over `id.timestamp.body`, with secrets as `whsec_...`.

Secrets stand in a file, one on a line; `#` begins a remark. With several, there are as many signatures, so that a
receiver can change from one to the other at any time. The file is read for each attempt: a change of it counts at once.
"""

import hmac
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from penstock.errors import ViewError

PREFIX = "whsec_"
MAKE = f'Make one: echo "{PREFIX}$(openssl rand -base64 32)"'
SHORTEST, LONGEST = 24, 64
"""Bytes of a secret."""


def signature(secrets: Sequence[bytes], identity: str, timestamp: int, body: bytes) -> str:
    """The header `webhook-signature`."""
    content = f"{identity}.{timestamp}.".encode() + body
    return " ".join(f"v1,{b64encode(hmac.digest(secret, content, sha256)).decode()}" for secret in secrets)


def secrets_in(path: Path) -> list[bytes]:
    """The secrets in a file. What is wrong is told, and shown to nobody."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ViewError(
            f'the secrets in "{path}" cannot be read', detail=f"{type(error).__name__}.", hint=f"{MAKE} > {path.name}"
        ) from None
    found = [(at, line.strip()) for at, line in enumerate(lines, start=1) if line.partition("#")[0].strip()]
    if not found:
        raise ViewError(f'there is no secret in "{path}"', hint=f"{MAKE} > {path.name}")
    return [_secret(path, at, line.partition("#")[0].strip()) for at, line in found]


def _secret(path: Path, line: int, text: str) -> bytes:
    try:
        found = b64decode(text.removeprefix(PREFIX), validate=True)
    except Error:
        found = b""
    if not text.startswith(PREFIX) or not SHORTEST <= len(found) <= LONGEST:
        raise ViewError(
            f'line {line} of "{path}" is no secret',
            detail=f"A secret is {PREFIX} and {SHORTEST} to {LONGEST} random bytes in base64.",
            hint=MAKE,
        )
    return found
