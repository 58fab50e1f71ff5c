"""Commands: what Penstock does, from a terminal."""

from penstock.cli.entry import main

__all__ = ["main"]
