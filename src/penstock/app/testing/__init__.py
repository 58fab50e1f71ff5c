"""Case files: a pipeline, steps, and what must be true after each, held against the real engine.

What needs Spark is imported from its file (`penstock.app.testing.running`).
"""

from penstock.app.testing.case import Case, Outcome, Step
from penstock.app.testing.reading import cases_in

__all__ = ["Case", "Outcome", "Step", "cases_in"]
