"""The Celery app and the beat table: how often each reconciler looks for work nobody hinted at."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "monarch_portal.settings")

# Seconds between two looks. Hints drive the work; this bounds how long a lost one costs.
BEAT_INTERVALS_S = {
    "jobs.queue": 2,
    "jobs.provisioning": 3,
    "jobs.running": 3,
    "jobs.recovering": 3,
    "jobs.stopping": 3,
    "jobs.teardown": 3,
    "jobs.sealing": 10,
    "jobs.retention": 3600,
}

app = Celery("monarch_portal")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["jobs"])
app.conf.beat_schedule = {
    # A tick that waited for as long as the next one is worthless: it expires, so that a worker
    # that was away finds no backlog.
    name: {"task": name, "schedule": seconds, "options": {"expires": seconds}}
    for name, seconds in BEAT_INTERVALS_S.items()
}
