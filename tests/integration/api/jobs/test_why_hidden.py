"""Wait reasons that involve jobs of a project hidden from the reader: counted, and not named."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.models import Cluster, Job, Pool, Quota
from jobs.reconcilers import prices, queue
from jobs.statuses import JobStatus
from tests.factories import make_attempt, make_project, set_default_queue
from tests.integration.api.jobs import test_why
from tests.integration.api.jobs.test_why import no_hints, queued, running, why
from tests.integration.api.jobs.test_why_all import ranked

__all__ = ["no_hints", "ranked"]  # fixtures
pytestmark = test_why.pytestmark


@pytest.fixture
def others(db) -> Any:
    return make_project("others")


def reported(readers: tuple[Any, Any], job: Job) -> tuple[str, str, str]:
    """Return the reason as a project member, an all-seeing user, and the stored row have it."""
    answers = [why(reader, job)["sentence"] for reader in readers]
    queue.run_pass()
    job.refresh_from_db()
    return answers[0], answers[1], job.message


def test_the_job_with_the_reservation_is_named_only_to_its_viewers(
    member, root, project, others, fake
):
    fake.set_capacity(2)
    running(project, 1)
    first, second = queued(others, 2), queued(project, 2)
    assert why(member, second)["no_estimate"].startswith("No estimate: job ")
    hidden = "Waits behind a job of another project, for which the next machines are reserved."
    named = f"Waits behind job {first.pk}, for which the next machines are reserved."
    (row,) = [each for each in member.get("/queue").json()["results"] if each["job_id"]]
    assert row["sentence"] == hidden
    assert reported((member, root), second) == (hidden, named, hidden)


def test_who_is_stopped_for_it_is_counted_where_the_job_is_not_seen(
    member, root, project, others, ranked
):
    Pool.objects.update(caps={"nodes": 3})
    victims = [running(each, 1, queue_name="low") for each in (others, project, others)]
    job = queued(project, 3, queue_name="urgent")
    numbers = ", ".join(str(each.pk) for each in victims)
    named = f"Waits for 3 nodes of jobs {numbers}, which are being stopped for it."
    own = f"job {victims[1].pk} and 2 jobs of other projects"
    hidden = f"Waits for 3 nodes of {own}, which are being stopped for it."
    assert reported((member, root), job) == (hidden, named, hidden)
    events = set(job.events.filter(verb="preempt").values_list("message", flat=True))
    each = "Waits for 1 node of {}, which is being stopped for it."
    named = each.format(f"job {victims[1].pk}")
    assert events == {each.format("a job of another project"), named}
    messages = [Job.objects.get(pk=each.pk).message for each in victims]
    assert messages[0] == "Preempted by a job of another project."
    assert messages[1] == f"Preempted by job {job.pk}."


def test_the_preempting_job_is_named_only_to_its_viewers(member, root, project, others, ranked):
    urgent = running(others, 2, queue_name="urgent")
    victim = queued(project, 2, queue_name="low", preempted_by=urgent, wait_reason="PREEMPTED")
    then = "Needs 2 nodes; 0 of 2 are free on gpus."
    hidden = f"Was preempted by a job of another project. {then}"
    named = f"Was preempted by job {urgent.pk}. {then}"
    assert reported((member, root), victim) == (hidden, named, hidden)


def test_the_preempting_job_stays_named_when_it_has_ended(member, project, ranked):
    urgent = queued(project, 2, queue_name="urgent", status=JobStatus.SUCCEEDED)
    running(project, 2, queue_name="low")
    victim = queued(project, 2, queue_name="low", preempted_by=urgent, wait_reason="PREEMPTED")
    said = f"Was preempted by job {urgent.pk}. Needs 2 nodes; 0 of 2 are free on gpus."
    assert reported((member, member), victim) == (said, said, said)


def test_a_job_without_a_price_is_named_only_to_its_viewers(member, root, project, others, fake):
    Quota.objects.create(caps={"usd_per_hour": 10}, queue=set_default_queue())
    job = queued(project, 2)
    prices.step()
    other = queued(others, 1, status=JobStatus.RUNNING)
    make_attempt(other)
    said = "The price of {}, which counts in the same quota, is being requested."
    hidden, named = said.format("a job of another project"), said.format(f"job {other.pk}")
    assert reported((member, root), job) == (hidden, named, hidden)


def test_what_a_job_of_another_project_costs_is_its_projects_to_know(
    member, root, project, others, fake
):
    fake.set_price("4.00")
    Quota.objects.create(caps={"usd_per_hour": 50}, queue=set_default_queue())
    other, own = running(others), running(project)
    Cluster.objects.filter(attempts__job=other).update(usd_per_hour="48.17")
    Cluster.objects.filter(attempts__job=own).update(usd_per_hour="1.00")
    job = queued(project)
    prices.step()
    holders = {each["job_id"]: each["has"] for each in why(member, job)["holders"]}
    assert holders == {None: "", own.pk: "$1.00 an hour"}
    holders = {each["job_id"]: each["has"] for each in why(root, job)["holders"]}
    assert holders == {other.pk: "$48.17 an hour", own.pk: "$1.00 an hour"}
