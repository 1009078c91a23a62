"""Databases of earlier releases are taken over, and keep their rows."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test.utils import CaptureQueriesContext

from jobs.ground import clock
from jobs.management.commands.prepare import bring_up_to_date
from jobs.models import Job, LogBlock
from tests.factories import make_attempt, make_job, make_spec

pytestmark = pytest.mark.django_db

APP, SQUASHED = "jobs", "0001_squashed_0025_count_gpus_again"
LAST_REPLACED = "0025_count_gpus_again"


@pytest.fixture
def recorder() -> MigrationRecorder:
    """Return the record of applied migrations, as the replaced migrations left it."""
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied(APP, SQUASHED)
    return recorder


def test_a_database_of_the_replaced_migrations_is_taken_over_as_it_is(recorder):
    attempt = make_attempt()
    fields = {"line_count": 1, "raw_bytes": 3, "payload": b"abc"}
    LogBlock.objects.create(attempt=attempt, first_line=1, created_at=clock.now(), **fields)
    with CaptureQueriesContext(connection) as queries:
        bring_up_to_date()
    statements = [query["sql"].strip() for query in queries]
    (change,) = (text for text in statements if not text.startswith("SELECT"))
    assert change.startswith('INSERT INTO "django_migrations"')
    assert (APP, SQUASHED) in recorder.applied_migrations()
    assert LogBlock.objects.get().attempt.job == attempt.job


def test_a_database_with_only_some_of_the_replaced_migrations_is_refused(recorder):
    recorder.record_unapplied(APP, LAST_REPLACED)
    with pytest.raises(CommandError, match=rf"older .* {APP}\.{LAST_REPLACED}"):
        bring_up_to_date()
    assert (APP, SQUASHED) not in recorder.applied_migrations()


def test_jobs_of_earlier_releases_keep_what_they_requested():
    portal = {
        "reuse": True,
        "idle": {"minutes": 30, "gpu_below": 5},
        "retry": {"max_attempts": 3},
        "budget_usd": 12.5,
        "log_policies": [{"name": "mine", "pattern": "boom", "actions": ["fail"]}],
        "depends_on": [3],
        "if_dependency_fails": "hold",
        "port": 30_000,
    }
    resources = {"any_of": [{"accelerators": "A100:4"}, {"cpus": "8"}]}
    make_job(spec=make_spec(portal=portal, secrets={"TOKEN": "hub"}, resources=resources))
    make_job(spec=make_spec(portal={"cluster": "mp-a"}))
    make_job()
    before = {job.pk: job.request for job in Job.objects.all()}
    Job.objects.update(request_options={})
    with connection.cursor() as cursor:
        cursor.execute(import_module("jobs.migrations.0031_job_request").FILL_IN)
    assert {job.pk: job.request for job in Job.objects.all()} == before
