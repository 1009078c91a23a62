"""The Celery app: its settings, its ticks, and what a worker does before it starts."""

import os

from celery import Celery
from celery.signals import worker_init

from jobs.background.ticks import beat_schedule
from jobs.ground.garbage import look_seldom

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "monarch_portal.settings")

app = Celery("monarch_portal")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["jobs"])
app.conf.beat_schedule = beat_schedule()


@worker_init.connect
def _begin_worker(**_: object) -> None:
    look_seldom()


@worker_init.connect
def _refuse_newer_database(**_: object) -> None:
    from jobs.actions.accounts.releases import why_not_to_start  # noqa: PLC0415 - models come later

    if why := why_not_to_start():
        raise SystemExit(why)
