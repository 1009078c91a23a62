"""What jobs want of kept clusters, read for all of them at once."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.models import Job
from jobs.queueing.limits import load_queues
from jobs.queueing.snapshot import load_snapshot
from jobs.queueing.warm_requests import wish_of, wishes_of
from tests.factories import make_job, make_project, make_spec

pytestmark = [pytest.mark.django_db, pytest.mark.feature("S2.8")]

GPUS = {"accelerators": "H100:8"}


def test_a_pass_reads_no_whole_specification():
    for _ in range(2):
        make_job(spec=make_spec(portal={"reuse": True}, envs={"A": "x" * 4000}))
    with CaptureQueriesContext(
        connection,
    ) as asked:
        snapshot = load_snapshot()
    assert all(job.wish is not None for job in snapshot.queued)
    assert [each for each in asked.captured_queries if '"spec",' in each["sql"]] == []


@pytest.mark.parametrize(
    "fields",
    [
        {"portal": {"reuse": True}},
        {"portal": {"reuse": True, "port": 23_000}, "resources": GPUS, "num_nodes": 3},
        {"portal": {"cluster": "mp-a"}, "resources": {"any_of": [{"cpus": 2}, GPUS]}},
    ],
)
def test_what_is_read_for_all_at_once_is_what_each_job_says(fields):
    job = make_job(make_project(), num_nodes=fields.get("num_nodes", 1), spec=make_spec(**fields))
    make_job(job.project)
    queues = load_queues()
    wish = wish_of(job, queues)
    assert wishes_of(Job.objects.all(), queues, {}) == {job.pk: wish}
    assert bool(wish.fingerprint) != bool(wish.cluster)
    assert wish.wants_gpus == ("resources" in fields)
