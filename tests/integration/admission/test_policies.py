"""Submits that the portal's policies refuse: at the line, with the limit and its owner."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.actions.jobs.submit import submit_job
from jobs.backends import registry
from jobs.errors import InvalidSpecError
from jobs.models import Cluster, Job
from jobs.statuses import ClusterStatus
from tests.factories import make_actor, make_project

pytestmark = pytest.mark.django_db


@pytest.fixture
def project():
    return make_project("rl")


@pytest.fixture
def fake(settings, tmp_path):
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path / "fake")
    return registry.get("fake")


@pytest.fixture
def submit(fake, project):
    def send(text: str) -> Job:
        source = f"name: x\nrun: 'true'\n{text}"
        return submit_job(make_actor(project), project, source)

    return send


@pytest.fixture
def refused(submit):
    """Return the errors of a submit as (path, line, code, message)."""

    def send(text: str) -> list[tuple[str, int, str, str]]:
        with pytest.raises(InvalidSpecError) as caught:
            submit(text)
        rows = caught.value.data["errors"]
        return [(row["path"], row["line"], row["code"], row["message"]) for row in rows]

    return send


REUSE = "portal:\n  reuse: true\n"


@pytest.mark.feature("P6.1")
def test_more_time_than_is_allowed_is_refused_at_its_line_with_the_limit_and_who_sets_it(
    refused, submit, project, settings
):
    project.max_duration_s = 7200
    project.save()
    settings.MPORTAL_MAX_DURATION_S = 10_000
    found = refused("portal:\n  max_duration: 3h\n")
    message = "portal.max_duration: At most 2 h: the limit of project rl."
    assert found == [("portal.max_duration", 4, "over_limit", message)]
    settings.MPORTAL_MAX_DURATION_S = 3600
    found = refused("portal:\n  max_duration: 2h\n")
    assert found[0][3].endswith("At most 1 h: the limit of this installation.")
    assert submit("portal:\n  max_duration: 1h\n").pk


@pytest.mark.feature("P6.1")
def test_more_idle_minutes_than_are_allowed_are_refused_at_their_line(refused, settings):
    settings.MPORTAL_MAX_IDLE_MINUTES = 15
    found = refused(REUSE + "  idle:\n    minutes: 16\n")
    message = "portal.idle.minutes: At most 15 minutes: the limit of this installation."
    assert found == [("portal.idle.minutes", 6, "over_limit", message)]


def test_a_gpu_idle_limit_is_refused_where_gpus_are_not_sampled(refused, submit, settings):
    text = "portal:\n  idle:\n    minutes: 5\n    gpu_below: 5\n"
    assert submit(text).pk
    settings.MPORTAL_METRICS_SECONDS = 0
    found = refused(text)
    assert [(path, line, code) for path, line, code, _ in found] == [
        ("portal.idle.gpu_below", 6, "not_enforced")
    ]
    assert found[0][3].endswith("MPORTAL_METRICS_SECONDS is 0.")


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("loss is (nan", "at character 9."),
        ("(?<=a)b", "invalid perl operator"),
        (r"(a)\1", "invalid escape sequence"),
        (r"\Qswallows what follows", "missing )"),
        ("(?:a{1000}){1000}", "invalid repetition size"),
        (r"\pL{1000}", "too large"),
    ],
)
@pytest.mark.feature("P3.4")
def test_a_pattern_that_the_portal_does_not_take_is_refused_at_its_place(refused, pattern, said):
    policy = "    - {name: good, pattern: ok, actions: [fail]}\n    - name: bad\n"
    text = f"portal:\n  log_policies:\n{policy}      pattern: '{pattern}'\n      actions: [fail]\n"
    ((path, line, code, message),) = refused(text)
    assert (path, line, code) == ("portal.log_policies[1].pattern", 7, "bad_value")
    assert said in message


def test_only_a_policy_that_every_job_has_goes_without_a_pattern(refused, submit):
    text = "portal:\n  log_policies:\n    - {name: NAME, actions: [annotate]}\n"
    assert submit(text.replace("NAME", "cuda_oom")).pk
    ((path, line, code, message),) = refused(text.replace("NAME", "mine"))
    assert (path, line, code) == ("portal.log_policies[0].pattern", 4, "missing")
    assert "gpu_hardware" in message


@pytest.mark.feature("P6.3")
def test_switching_off_is_refused_where_machines_cannot_be_with_the_reason(refused, submit, fake):
    text = REUSE + "  idle: {minutes: 5, then: stop}\n"
    assert submit(text).pk
    fake.refuse_stop("Slurm keeps no disks.")
    found = refused(text)
    assert found == [
        ("portal.idle.then", 5, "unsupported_by_backend", "Slurm keeps no disks."),
    ]


def test_a_backend_that_keeps_no_machines_refuses_reuse(refused, settings):
    settings.MPORTAL_LOCAL_BACKEND = True
    found = refused("resources: {infra: local}\nportal:\n  reuse: true\n")
    assert [(path, code) for path, _, code, _ in found] == [
        ("portal.reuse", "unsupported_by_backend")
    ]


def test_a_job_goes_to_the_backend_of_the_cluster_it_was_checked_for(submit, project, monkeypatch):
    fields = {"backend_name": "local", "is_reusable": True, "status": ClusterStatus.UP}
    cluster = Cluster.objects.create(project=project, name="mpa-1", num_nodes=2, **fields)

    def released_meanwhile(*_) -> list[Any]:
        cluster.delete()
        return []

    monkeypatch.setattr("jobs.actions.jobs.submit.queue_problems", released_meanwhile)
    assert registry.names()[0] == "fake"
    assert submit("portal:\n  cluster: mpa-1\n").backend_name == "local"


def test_a_job_may_name_a_cluster_that_its_project_keeps(submit, refused, project):
    fields = {"backend_name": "fake", "is_reusable": True, "status": ClusterStatus.UP}
    Cluster.objects.create(project=project, name="mpa-1", num_nodes=2, **fields)
    Cluster.objects.create(project=make_project("other"), name="mpb-1", num_nodes=2, **fields)
    job = submit("num_nodes: 1\nportal:\n  cluster: mpa-1\n")
    assert job.backend_name == "fake"
    for text in (
        "portal:\n  cluster: mpb-1\n",
        "portal:\n  cluster: mpc-1\n",
        "num_nodes: 3\nportal:\n  cluster: mpa-1\n",
    ):
        assert [code for _, _, code, _ in refused(text)] == ["unknown_cluster"]
