"""The Celery app and the beat table: how often each reconciler looks for work nobody hinted at."""

import os

from celery import Celery
from celery.schedules import schedule
from celery.signals import worker_init

from jobs.ground.garbage import look_seldom
from monarch_portal import redis_broker
from monarch_portal.beat import steady_now

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "monarch_portal.settings")

# Seconds between two looks. Hints drive the work; this bounds how long a lost one costs.
BEAT_INTERVALS_S = {
    "jobs.queue": 2,
    "jobs.dependencies": 2,
    "jobs.children": 5,
    "jobs.provisioning": 3,
    "jobs.running": 3,
    "jobs.recovering": 3,
    "jobs.stopping": 3,
    "jobs.teardown": 3,
    "jobs.autostop": 5,
    "jobs.log_policies": 3,
    # Their times come without a hint: this is how late a job may be.
    "jobs.schedules": 3,
    "jobs.sealing": 10,
    "jobs.billing": 10,
    "jobs.budgets": 5,
    "jobs.prices": 5,
    "jobs.job_budgets": 5,
    "jobs.infra": 10,
    "jobs.orphans": 60,
    # Beat keeps no times over a restart, and leaves out a tick while much waits.
    "jobs.retention": 600,
}

redis_broker.register()
app = Celery("monarch_portal")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["jobs"])
app.conf.beat_schedule = {
    # No tick expires: that would be a time of day, which another machine's clock may have passed.
    name: {"task": name, "schedule": schedule(seconds, nowfun=steady_now)}
    for name, seconds in BEAT_INTERVALS_S.items()
}


@worker_init.connect
def _begin_worker(**_: object) -> None:
    look_seldom()


@worker_init.connect
def _refuse_newer_database(**_: object) -> None:
    from jobs.actions.accounts.releases import why_not_to_start  # noqa: PLC0415 - models come later

    if why := why_not_to_start():
        raise SystemExit(why)
