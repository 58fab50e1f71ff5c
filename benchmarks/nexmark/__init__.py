"""Nexmark: the standard benchmark of streaming SQL, here and on Flink, over the same events."""
