"""The whole: rooms wired together. The only room that knows all others."""

from penstock.app.demo import Scene, Step, demo

__all__ = ["Scene", "Step", "demo"]
