"""Names of a new attempt's cluster."""

from __future__ import annotations

import re

import pytest

from jobs.actions.attempts.start_attempt import start_attempt
from jobs.models import Attempt, Cluster, Installation, Job
from tests.factories import make_job

pytestmark = pytest.mark.django_db


def start_numbered(pk: int) -> Attempt:
    return start_attempt(make_job(id=pk))


def test_a_job_number_that_comes_again_after_a_restored_backup_gets_a_name_of_its_own():
    lost = start_numbered(4711).cluster.name
    Job.objects.filter(pk=4711).delete()
    Cluster.objects.all().delete()
    again = start_numbered(4711).cluster.name
    assert again != lost
    known = re.fullmatch(r"mp(\w+)-[0-9a-f]{6}-4711-1", again)
    assert known, again
    assert known[1] == Installation.current().key


def test_the_longest_name_fits():
    name = start_numbered(2**63 - 1).cluster.name
    assert len(name) <= Cluster._meta.get_field("name").max_length
