"""The Java process behind PySpark, started as PySpark starts it, with its standard error coming through ours.

Every line that it writes goes on at once, but one: Spark asks for a module that Java calls an incubator, Java says so
at each start, and no option keeps it from that.
"""

import os
from contextlib import suppress
from threading import Thread
from typing import BinaryIO, Final

from py4j.java_gateway import JavaGateway
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

REMARK: Final = b"WARNING: Using incubator modules:"
STANDARD_ERROR: Final = 2


def launched(conf: SparkConf) -> JavaGateway:
    """A new Java process, which PySpark can use as its own."""
    reading, writing = os.pipe()
    copying = Thread(target=_copy, args=(os.fdopen(reading, "rb"),), name="penstock-java-stderr", daemon=True)
    copying.start()
    try:
        return launch_gateway(conf, {"stderr": writing})  # type: ignore[no-untyped-call]
    finally:
        os.close(writing)  # the last one who can write is then the Java process: reading ends with it


def _copy(lines: BinaryIO) -> None:
    with lines:
        for line in lines:
            if not line.startswith(REMARK):
                with suppress(OSError):  # nobody listens to us, and Java has to go on
                    os.write(STANDARD_ERROR, line)
