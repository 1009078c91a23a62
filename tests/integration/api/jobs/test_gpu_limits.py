"""Limits on GPUs hold for every spelling of a request; too large numbers get a clear message."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.models import Job, Pool, Queue, Quota
from tests.factories import make_project

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fake"), pytest.mark.feature("P5.1")]

JOBS = "/projects/rl/jobs"


@pytest.fixture
def cap(project, fake) -> None:
    """Limit all jobs of the project to four H100."""
    Quota.objects.create(project=project, caps={"gpus:H100": 4})


def send(member: Any, resources: str, more: str = "") -> Any:
    text = f"name: x\nrun: 'true'\nresources: {{infra: fake, {resources}}}\n{more}"
    return member.post(JOBS, text, content_type="application/yaml")


def errors(answer: Any) -> list[tuple[str, str]]:
    assert answer.status_code == 422, answer.content
    return [(row["path"], row["code"]) for row in answer.json()["errors"]]


@pytest.mark.parametrize(
    "resources",
    [
        "accelerators: H100:8",
        "accelerators: {H100:8}",
        "accelerators: [H100:8]",
        "accelerators: {A100:1, H100:8}",
        "accelerators: A100:1, any_of: [{accelerators: H100:8}]",
        "ordered: [{accelerators: A100:1}, {accelerators: {H100:8}}]",
    ],
)
def test_no_spelling_gets_a_job_past_a_quota(member, cap, resources):
    answer = send(member, resources)
    assert errors(answer) == [("portal.queue", "over_limit")]
    assert "Needs 8 GPUs (H100); project rl may have 4 GPUs (H100)" in answer.content.decode()
    assert not Job.objects.exists()


def test_a_person_learns_in_which_project_they_may_have_less(member, project):
    Quota.objects.create(project=project, user=member.user, caps={"gpus:H100": 4})
    answer = send(member, "accelerators: H100:8")
    assert errors(answer) == [("portal.queue", "over_limit")]
    name = f"{member.user.username} in project rl"
    said = f"Needs 8 GPUs (H100); {name} may have 4 GPUs (H100) at once."
    assert said in answer.content.decode()


def test_what_is_queued_counts_the_gpus_of_all_nodes(member, project):
    assert send(member, "accelerators: {H100:8}", "num_nodes: 3\n").status_code == 201
    job = Job.objects.get()
    assert (job.gpu_type, job.gpu_count) == ("H100", 24)


@pytest.mark.parametrize("count", ["4000000000", "1.0e+300"])
def test_a_number_too_large_is_reported_at_its_line(member, project, count):
    answer = send(member, f"accelerators: {{H100: {count}}}")
    assert errors(answer) == [("resources.accelerators.H100", "bad_value")]
    assert answer.json()["errors"][0]["line"] == 3


def test_more_gpus_over_all_nodes_than_can_be_counted_are_refused(member, project, fake):
    fake.set_capacity(10_000)
    answer = send(member, "accelerators: {H100: 999999}", "num_nodes: 10000\n")
    assert errors(answer) == [("resources.accelerators", "too_large")]
    most = {"H100": 214_748}
    assert send(member, f"accelerators: {most}", "num_nodes: 10000\n").status_code == 201


MACHINE = "instance_type: p5.48xlarge"


@pytest.mark.parametrize(
    "resources",
    [
        MACHINE,
        f"any_of: [{{{MACHINE}}}, {{accelerators: H100:1}}]",
        f"{MACHINE}, ordered: [{{accelerators: H100:1}}, {{cpus: 4}}]",
    ],
)
def test_a_type_of_machine_alone_is_refused_where_gpus_are_counted(member, cap, resources):
    answer = send(member, resources)
    assert errors(answer) == [("resources.instance_type", "missing")]
    assert "GPUs of project rl are limited" in answer.content.decode()
    assert "`accelerators: H100:8`" in answer.content.decode()


@pytest.mark.parametrize("caps", [{"gpus": 8}, {"gpus:H100": 8}])
def test_a_pool_that_counts_gpus_takes_no_type_of_machine_alone(member, project, caps):
    pool = Pool.objects.create(name="big", backend_name="fake", caps=caps)
    Queue.objects.create(name="night", pool=pool)
    night = "portal: {queue: night}\n"
    assert errors(send(member, MACHINE, night)) == [("resources.instance_type", "missing")]
    assert send(member, f"{MACHINE}, accelerators: H100:8", night).status_code == 201
    assert send(member, MACHINE).status_code == 201


@pytest.mark.parametrize("caps", [{"nodes": 8}, {"jobs": 2, "usd_per_hour": 40}])
def test_a_machine_type_alone_is_taken_where_no_limit_counts_gpus(member, project, caps):
    Quota.objects.create(project=project, caps=caps)
    Quota.objects.create(project=make_project("other"), caps={"gpus": 8})
    assert send(member, MACHINE).status_code == 201
