"""An upgrade fills what clusters and jobs of older versions are counted by."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps

from jobs.actions.queue_places import counted_of
from jobs.models import Cluster, Job
from tests.factories import make_attempt, make_job, make_spec

pytestmark = pytest.mark.django_db

step = import_module("jobs.migrations.0023_what_clusters_hold")


def make(nodes: int, portal: dict[str, object] | None = None, **fields: object) -> Job:
    gpus = {"accelerators": "H100:8"}
    spec = make_spec(num_nodes=nodes, resources=gpus, portal=portal or {})
    return make_job(num_nodes=nodes, spec=spec, **counted_of(spec), **fields)


def empty() -> None:
    Cluster.objects.update(gpu_type="", gpu_count=0, queue_name="default", started_by=None)
    Job.objects.update(fingerprint="")


def test_a_cluster_gets_what_the_job_held_for_which_it_was_made():
    first = make(4, queue_name="train", status="SUCCEEDED")
    cluster = make_attempt(first).cluster
    make_attempt(make(1), cluster=cluster)
    empty()
    step.fill_clusters(apps, None)
    cluster = Cluster.objects.get()
    assert (cluster.queue_name, cluster.gpu_type, cluster.gpu_count) == ("train", "H100", 32)
    assert cluster.started_by == first.submitted_by


def test_of_a_cluster_whose_first_job_is_deleted_the_next_one_tells_how_many_gpus_a_node_has():
    first = make(4, status="SUCCEEDED")
    cluster = make_attempt(first).cluster
    make_attempt(make(1), cluster=cluster)
    first.attempts.all().delete()
    empty()
    step.fill_clusters(apps, None)
    assert Cluster.objects.get().gpu_count == 32


def test_jobs_that_wait_know_again_which_kept_clusters_fit_them():
    reuses, plain = make(2, {"reuse": True}), make(2)
    names, over = make(2, {"cluster": "mp-a"}), make(2, {"reuse": True}, status="FAILED")
    wanted = reuses.fingerprint
    empty()
    step.fill_fingerprints(apps, None)
    found = dict(Job.objects.values_list("pk", "fingerprint"))
    assert wanted and found == {reuses.pk: wanted, plain.pk: "", names.pk: "", over.pk: ""}
