"""Spark reads Kafka."""
