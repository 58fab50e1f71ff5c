"""Tests of the bridge to RabbitMQ."""
