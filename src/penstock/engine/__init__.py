"""A declared pipeline becomes one running Spark query."""

from penstock.engine.java import Java, find_java
from penstock.engine.session import leave, session, start

__all__ = ["Java", "find_java", "leave", "session", "start"]
