"""A declared pipeline becomes one running Spark query."""

from penstock.engine.java import find_java
from penstock.engine.session import leave, session, start
from penstock.engine.source import read_topic, stream_topic

__all__ = ["find_java", "leave", "read_topic", "session", "start", "stream_topic"]
