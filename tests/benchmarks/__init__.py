"""The benchmarks: what they write, and that systems answer alike."""
