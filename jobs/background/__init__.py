"""What the portal adds to Celery: hints, ticks, the pace of the queue, and locks of steps.

docs/explanation/background-work.md says why each part is needed.
"""
