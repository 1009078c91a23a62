"""The portal's only Django app."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """The Django app, under its short name."""

    name = "jobs"
    default_auto_field = "django.db.models.BigAutoField"
