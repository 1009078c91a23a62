"""The Celery app and the beat table: how often each reconciler looks for work nobody hinted at."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "monarch_portal.settings")

app = Celery("monarch_portal")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["jobs"])
