"""Answers reach people: HTTP, push, metrics.

What needs FastAPI, which is an extra, is imported from its file (`penstock.serve.server`).
"""

from penstock.serve.settings import Limits, Settings
from penstock.serve.source import Served

__all__ = ["Limits", "Served", "Settings"]
