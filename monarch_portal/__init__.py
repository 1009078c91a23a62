"""The Django project: wiring only. Product rules live in `jobs`."""

from monarch_portal.celery import app as celery_app

__all__ = ["celery_app"]
