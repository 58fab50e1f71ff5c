"""Tests of the log on Kafka, with a broker of their own."""
