"""The commands, without Spark."""
