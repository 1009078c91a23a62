"""Additions to Celery: hints, ticks, the pace of scheduling passes, and locks of steps.

docs/explanation/background-work.md says why each part is needed.
"""
