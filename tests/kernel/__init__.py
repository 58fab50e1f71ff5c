"""The proof of the kernel, without a Spark session."""
