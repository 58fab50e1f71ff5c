"""Settings of librdkafka, as Kafka's client for Java has them: Spark's executors read the topics with that one.

Most have one name in both. What only librdkafka has is left out: how it works is not what it is allowed to.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.errors import LogError

NAMES = "ssl.endpoint.identification.algorithm"
PLAIN = (
    "security.protocol",
    "client.id",
    "client.rack",
    NAMES,
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.key.password",
    "sasl.kerberos.service.name",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.jaas.config",
    "fetch.max.bytes",
    "max.partition.fetch.bytes",
    "receive.buffer.bytes",
    "request.timeout.ms",
    "socket.connection.setup.timeout.ms",
)
MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def java_settings(given: Mapping[str, Any]) -> dict[str, str]:
    """The settings for Java."""
    found = {name: str(given[name]) for name in PLAIN if name in given}
    if found.get(NAMES) == "none":
        found[NAMES] = ""
    return found | _login(given) | _certificates(given)


def _login(given: Mapping[str, Any]) -> dict[str, str]:
    mechanism = given.get("sasl.mechanism", given.get("sasl.mechanisms"))
    if mechanism is None:
        return {}
    found = {"sasl.mechanism": str(mechanism)}
    if (module := MODULES.get(str(mechanism))) and "sasl.username" in given:
        user, password = _quoted(given["sasl.username"]), _quoted(given.get("sasl.password", ""))
        found["sasl.jaas.config"] = f"{module} required username={user} password={password};"
    return found


def _quoted(text: Any) -> str:
    escaped = str(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _certificates(given: Mapping[str, Any]) -> dict[str, str]:
    """Files in PEM, which Java takes as text: executors on other machines need not have them."""
    found: dict[str, str] = {}
    if (trusted := _text(given, "ssl.ca")) is not None:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": trusted}
    own, key = _text(given, "ssl.certificate"), _text(given, "ssl.key")
    if own is not None and key is not None:
        found |= {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": own, "ssl.keystore.key": key}
    return found


def _text(given: Mapping[str, Any], name: str) -> str | None:
    """What the file holds that is named, or what stands in the settings themselves."""
    if (path := given.get(f"{name}.location")) is None:
        return None if (text := given.get(f"{name}.pem")) is None else str(text)
    try:
        return Path(str(path)).read_text()
    except (OSError, ValueError) as error:
        raise LogError(
            f'what "{name}.location" names cannot be read',
            detail=f"{type(error).__name__}.",
            hint="For Spark it has to be a file in PEM.",
        ) from None
