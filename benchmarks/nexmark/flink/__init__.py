"""Nexmark on Flink: the same events as files, the same queries in Flink's SQL, run in an environment of its own."""
