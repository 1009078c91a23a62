"""Tables are empty before the next test, whichever way they are emptied."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.contrib.contenttypes.models import ContentType
from django.test import TransactionTestCase

from jobs.audit.record import record
from jobs.ground import clock
from jobs.models import Job, LogBlock
from tests import emptied_tables
from tests.factories import make_array, make_attempt, make_project

pytestmark = pytest.mark.django_db(transaction=True)


def filled() -> set[str]:
    """Return the tables that have rows."""
    models = apps.get_models(include_auto_created=True)
    return {model._meta.db_table for model in models if model._default_manager.exists()}


@pytest.mark.parametrize("few", [1, emptied_tables.FEW], ids=["many rows", "few rows"])
def test_no_row_is_left_but_those_of_content_types_and_permissions(monkeypatch, few):
    monkeypatch.setattr(emptied_tables, "FEW", few)
    attempt = make_attempt()
    Job.objects.filter(pk=attempt.job_id).update(parent=attempt.job_id)
    make_array(make_project())
    fields = {"line_count": 1, "raw_bytes": 3, "payload": b"abc"}
    record(None, "hold", attempt.job)
    LogBlock.objects.create(attempt=attempt, first_line=1, created_at=clock.now(), **fields)
    assert {"jobs_auditentry", "jobs_job", "jobs_jobarray", "jobs_logblock"} < filled()
    known = ContentType.objects.count()
    TransactionTestCase("__init__")._fixture_teardown()
    assert filled() == emptied_tables.KEPT
    assert ContentType.objects.count() == known
