"""Pipelines on a standalone cluster of Spark."""
