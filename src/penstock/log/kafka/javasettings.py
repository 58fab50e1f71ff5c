"""Settings of librdkafka, as Kafka's client for Java has them: Spark's executors read the topics with that one.

Most have one name in both. What only librdkafka has is left out: how it works is not what it is allowed to.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

PLAIN = (
    "security.protocol",
    "client.id",
    "client.rack",
    "ssl.endpoint.identification.algorithm",
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
    if "ssl.ca.location" in given:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": _text(given["ssl.ca.location"])}
    elif "ssl.ca.pem" in given:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": str(given["ssl.ca.pem"])}
    if "ssl.certificate.location" in given and "ssl.key.location" in given:
        found |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": _text(given["ssl.certificate.location"]),
            "ssl.keystore.key": _text(given["ssl.key.location"]),
        }
    return found


def _text(path: Any) -> str:
    return Path(str(path)).read_text()
