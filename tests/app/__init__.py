"""Rooms wired together: pipelines, their stores, their plans."""
