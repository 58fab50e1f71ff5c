"""Benchmarks: each one command, a table on the screen, and figures in results/."""
