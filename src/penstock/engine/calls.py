"""Calls into the Java process, cheaper than Py4J makes them.

Two habits of Py4J are costly with the some hundred jars of PySpark. It asks what `org` is, then what `org.apache` is,
and Java looks into every jar before it says that they are packages: here those that we use are known beforehand. And
it walks through a Java collection until Java throws an exception, about which PySpark asks a dozen such questions: here
it asks whether there is one more.
"""

from typing import Any, Final

from py4j.java_collections import JavaIterator
from py4j.java_gateway import JavaGateway, JavaPackage
from py4j.protocol import ITERATOR_TYPE, register_output_converter

PACKAGES: Final = (
    "java.lang",
    "java.util",
    "py4j.reflection",
    "org.apache.spark.sql.execution.streaming.state",
    "org.apache.spark.sql.penstock",
    "org.apache.spark.sql.types",
)


class _Iterator(JavaIterator):  # type: ignore[misc]
    def next(self) -> Any:
        if not self.hasNext():
            raise StopIteration
        return super().next()

    __next__ = next


def quickened(gateway: JavaGateway) -> JavaGateway:
    """The gateway, with the packages known, and collections walked through without an exception at their end."""
    register_output_converter(ITERATOR_TYPE, _Iterator)
    for package in PACKAGES:
        at, name = gateway.jvm, ""
        for part in package.split("."):
            name = f"{name}.{part}" if name else part
            at = vars(at).setdefault(part, JavaPackage(name, gateway._gateway_client, gateway.jvm._id))
    return gateway
