"""The engine, on a real Spark session."""
