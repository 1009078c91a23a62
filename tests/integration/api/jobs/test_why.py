"""Wait reasons of a job, each cause planted: message, binding limit, holders, and until when."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from jobs.actions.jobs.hold import hold_job
from jobs.errors import BackendUnavailableError
from jobs.models import Cluster, Job, JobArray, Pool, Project, Queue, Quota
from jobs.permissions import Actor
from jobs.reconcilers import prices, queue
from jobs.statuses import JobStatus
from tests.factories import make_attempt, make_job, make_project, make_spec, set_default_queue

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("fake"),
    pytest.mark.feature("P5.5"),
]


@pytest.fixture(autouse=True)
def no_hints(monkeypatch) -> None:
    monkeypatch.setattr("jobs.background.hints.wake", lambda *args, **_: None)
    monkeypatch.setattr("jobs.live.channel._publish", lambda *args: None)


def why(client: Any, job: Job) -> dict[str, Any]:
    answer = client.get(f"/projects/{job.project.slug}/jobs/{job.pk}/why")
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def moment(text: str) -> datetime:
    parsed = parse_datetime(text)
    assert parsed is not None
    return parsed


def queued(project: Project, nodes: int = 1, **fields: Any) -> Job:
    portal = fields.pop("portal", {})
    spec = make_spec(num_nodes=nodes, portal=portal, **fields.pop("spec", {}))
    return make_job(project, num_nodes=nodes, spec=spec, **fields)


def running(project: Project, nodes: int = 1, **fields: Any) -> Job:
    job = queued(project, nodes, status=JobStatus.RUNNING, **fields)
    make_attempt(job, run_started_at=timezone.now())
    return job


def test_the_first_waiting_job_learns_the_holders_of_machines_and_until_when(member, project, fake):
    fake.set_capacity(4)
    holder = running(project, 3, portal={"max_duration": "1h"})
    reported = why(member, queued(project, 2))
    assert reported["code"] == "no_room"
    assert reported["sentence"] == "Needs 2 nodes; 1 of 4 is free on fake."
    assert (reported["position"], reported["of"], reported["ahead"]) == (1, 1, [])
    limit = {"kind": "machines", "name": "fake", "what": "nodes"}
    assert reported["limit"] == {**limit, "needed": 2, "used": 3, "cap": 4}
    (has,) = reported["holders"]
    assert (has["job_id"], has["has"]) == (holder.pk, "3 nodes")
    assert reported["basis"] == "bounds"
    at = moment(reported["expected_at"])
    assert timedelta(minutes=59) < at - timezone.now() < timedelta(minutes=71)


def test_a_job_behind_a_reservation_learns_its_holder_and_its_position(member, project, fake):
    fake.set_capacity(2)
    running(project, 1)
    first, second = queued(project, 2), queued(project, 1)
    reported = why(member, second)
    assert reported["code"] == "behind"
    assert (
        reported["sentence"]
        == f"Waits behind job {first.pk}, for which the next machines are reserved."
    )
    assert (reported["position"], reported["of"]) == (2, 2)
    assert [each["job_id"] for each in reported["ahead"]] == [first.pk]


def test_an_estimate_goes_by_how_long_such_jobs_lasted_before(member, project, fake):
    fake.set_capacity(1)
    for minutes in (10, 20, 90):
        past_run(project, minutes, name="train")
    running(project, name="train")
    reported = why(member, queued(project))
    assert reported["basis"] == "past_runs"
    at = moment(reported["expected_at"])
    assert timedelta(minutes=19) < at - timezone.now() < timedelta(minutes=21)


def past_run(project, minutes: float, **fields) -> None:
    """Create a job that succeeded yesterday after so many minutes."""
    past = queued(project, status=JobStatus.SUCCEEDED, **fields)
    begun = timezone.now() - timedelta(days=1)
    attempt = make_attempt(past, ended_at=begun + timedelta(minutes=minutes), exit_code=0)
    type(attempt).objects.filter(pk=attempt.pk).update(created_at=begun)
    type(attempt.cluster).objects.update(status="GONE")


def test_the_first_job_with_a_bound_does_not_seem_to_start_after_those_behind_it(
    member, project, fake
):
    fake.set_capacity(1)
    past_run(project, 20, name="train")
    running(project, name="train", portal={"max_duration": "1h"})
    first, second = queued(project, name="train"), queued(project)
    found = [why(member, job) for job in (first, second)]
    assert [each["basis"] for each in found] == ["past_runs", "past_runs"]
    starts = [moment(each["expected_at"]) - timezone.now() for each in found]
    assert timedelta(minutes=19) < starts[0] < timedelta(minutes=21) < starts[1]
    latest = moment(found[0]["latest_at"]) - timezone.now()
    assert timedelta(minutes=59) < latest < timedelta(minutes=71)
    assert found[1]["latest_at"] is None


def test_jobs_of_an_array_go_by_their_siblings(member, project, fake):
    fake.set_capacity(1)
    array = JobArray.objects.create(project=project, name="sweep", size=3, submitted_by=member.user)
    past_run(project, 20, name="sweep-0", array=array, array_index=0)
    running(project, name="sweep-1", array=array, array_index=1)
    reported = why(member, queued(project, name="sweep-2", array=array, array_index=2))
    assert (reported["basis"], reported["no_estimate"]) == ("past_runs", "")


def test_machines_that_are_ending_are_counted(member, project, fake):
    fake.set_capacity(4)
    # Its status is about to change: its machines count once.
    over = queued(project, 1, status=JobStatus.RUNNING)
    make_attempt(over, ended_at=timezone.now())
    ending = make_attempt(queued(project, 3, status=JobStatus.SUCCEEDED), ended_at=timezone.now())
    Cluster.objects.filter(pk=ending.cluster_id).update(
        release_requested_at=timezone.now(), num_nodes=3
    )
    reported = why(member, queued(project, 1))
    assert reported["sentence"] == "Needs 1 node; 0 of 4 are free on fake, 4 are ending."


def test_without_anything_known_of_those_ahead_no_moment_is_made_up(member, project, fake):
    fake.set_capacity(1)
    holder = running(project)
    reported = why(member, queued(project))
    assert (reported["expected_at"], reported["basis"]) == (None, "")
    lately = "no max_duration, and no such job has succeeded lately."
    assert reported["no_estimate"] == f"No estimate: job {holder.pk} has {lately}"
    first, second = queued(project, portal={"max_duration": "1h"}), queued(project)
    assert first.pk and why(member, second)["no_estimate"].startswith("No estimate: job ")


@pytest.mark.parametrize("whose", ["project", "person", "each person", "queue"])
def test_a_quota_is_named_with_whose_it_is_and_who_uses_it(member, project, fake, whose):
    fake.set_capacity(9)
    line = set_default_queue()
    fields: dict[str, Any] = {
        "project": {"project": project},
        "person": {"project": project, "user": member.user},
        "each person": {"project": project, "per_person": True},
        "queue": {"queue": line},
    }[whose]
    Quota.objects.create(caps={"nodes": 3}, **fields)
    holder = running(project, 2, submitted_by=member.user)
    reported = why(member, queued(project, 2, submitted_by=member.user))
    user, slug = member.user.username, project.slug
    words = {"project": f"project {slug}", "queue": "queue default"}
    name = words.get(whose, f"{user} in project {slug}")
    said = f"Needs 2 nodes; {name} may have 3 nodes at once, and has 2."
    assert (reported["code"], reported["reason"], reported["sentence"]) == ("quota", "QUOTA", said)
    assert reported["limit"]["name"] == {"project": slug, "queue": "default"}.get(whose, user)
    assert [each["job_id"] for each in reported["holders"]] == [holder.pk]


def test_a_quota_of_a_person_in_a_pool_is_reported_with_its_project_and_its_pool(
    member, project, fake
):
    fake.set_capacity(9)
    pool = Pool.objects.create(name="big", backend_name="fake", caps={"nodes": 8})
    Queue.objects.create(name="long", pool=pool)
    Quota.objects.create(caps={"jobs": 1}, project=project, user=member.user, pool=pool)
    mine = {"queue_name": "long", "submitted_by": member.user}
    running(project, 1, **mine)
    said = f"{member.user.username} in project {project.slug} and pool big may run 1 job at once"
    assert why(member, queued(project, 1, **mine))["sentence"] == f"{said}, and runs 1."


def test_a_quota_of_gpus_counts_those_of_its_type(member, project, fake):
    fake.set_capacity(9)
    Quota.objects.create(caps={"gpus:H100": 8}, project=project)
    gpus = {"spec": {"resources": {"accelerators": "H100:8"}}}
    running(project, 1, **gpus)
    said = "Needs 8 GPUs (H100); project {} may have 8 GPUs (H100) at once, and has 8."
    assert why(member, queued(project, 1, **gpus))["sentence"] == said.format(project.slug)
    assert why(member, queued(project, 1))["code"] == "next"


@pytest.mark.feature("P5.1")
def test_a_quota_of_money_reports_what_is_left_and_before_that_for_what_it_waits(
    member, project, fake
):
    fake.set_price("4.00")
    Quota.objects.create(caps={"usd_per_hour": 10.5}, project=project)
    holder = running(project, 1)
    Cluster.objects.update(usd_per_hour="7.30")
    job = queued(project, 2)
    reported = why(member, job)
    said = "Its price is being requested."
    assert (reported["code"], reported["reason"], reported["sentence"]) == ("price", "QUOTA", said)
    prices.step()
    reported = why(member, job)
    said = f"Needs $8.00 an hour; $3.20 of $10.50 is left in project {project.slug}."
    assert (reported["code"], reported["reason"], reported["sentence"]) == ("quota", "QUOTA", said)
    numbers = {"what": "usd_per_hour", "needed": 8.0, "used": 7.3, "cap": 10.5}
    assert reported["limit"] == {"kind": "project", "name": project.slug, **numbers}
    assert [(each["job_id"], each["has"]) for each in reported["holders"]] == [
        (holder.pk, "$7.30 an hour")
    ]


@pytest.mark.feature("P5.3")
def test_a_group_that_is_full_is_named(member, project, fake):
    fake.set_capacity(9)
    group = {"portal": {"concurrency": {"group": "eval", "max": 1}}}
    running(project, **group)
    reported = why(member, queued(project, **group))
    assert reported["sentence"] == "The group eval may run 1 job at once, and runs 1."
    assert reported["limit"]["kind"] == "group"


def test_a_pool_without_that_much_is_named(member, project, fake):
    fake.set_capacity(9)
    pool = Pool.objects.create(name="small", backend_name="fake", caps={"nodes": 2})
    Queue.objects.create(name="short", pool=pool)
    running(project, 1, queue_name="short")
    reported = why(member, queued(project, 2, queue_name="short"))
    assert reported["sentence"] == "Needs 2 nodes; 1 of 2 is free on small."


def test_a_backend_that_is_away_is_named_in_its_own_words(member, project, fake, monkeypatch):
    def away(_: object) -> int:
        raise BackendUnavailableError("The cloud is away.")

    monkeypatch.setattr(type(fake), "capacity_nodes", away)
    reported = why(member, queued(project))
    assert (reported["sentence"], reported["expected_at"]) == ("The cloud is away.", None)


def test_a_pause_after_a_failed_start_is_reported_in_the_clouds_words(member, project):
    soon = timezone.now() + timedelta(minutes=1)
    message = "No H100 in eu-west-4."
    job = queued(project, wait_reason="BACKOFF", message=message, next_try_at=soon)
    reported = why(member, job)
    assert (reported["code"], reported["reason"], reported["sentence"]) == (
        "backoff",
        "BACKOFF",
        message,
    )
    assert reported["next_try_at"] is not None


def test_the_holder_is_named(member, project):
    job = queued(project, submitted_by=member.user)
    hold_job(Actor(member.user), job)
    reported = why(member, job)
    assert (reported["code"], reported["reason"]) == ("held", "HELD")
    assert reported["sentence"] == (
        f"Held by {member.user.username}. It is held until `mportal release {job.pk}`, or its "
        "button, releases it."
    )


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"status": "FAILED", "stop_reason": "DEPENDENCY", "message": "It needs job 7."},
            "It ended FAILED (DEPENDENCY): It needs job 7.",
        ),
        ({"status": "SUCCEEDED"}, "It ended SUCCEEDED."),
    ],
)
def test_the_explanation_of_an_ended_job_names_how_and_why(member, project, fields, said):
    reported = why(member, queued(project, **fields))
    assert (reported["code"], reported["sentence"]) == ("not_waiting", said)


def test_a_job_that_starts_next_or_runs_is_said_to(member, project, fake):
    fake.set_capacity(1)
    job = queued(project)
    assert why(member, job)["code"] == "next"
    queue.run_pass()
    assert why(member, job)["code"] == "not_waiting"


def test_of_another_project_only_the_existence_of_a_job_is_shown(member, project, fake):
    fake.set_capacity(2)
    running(make_project(), 2, name="secret-plan")
    queued(make_project(), 2, name="secret-too")
    reported = why(member, queued(project, 2))
    nobody = {"job_id": None, "project": "", "name": "", "owner": "", "status": ""}
    assert reported["ahead"] == [{**nobody, "has": ""}]
    assert reported["code"] == "behind"
    assert reported["no_estimate"].startswith(
        "No estimate: a job of another project and 1 more have"
    )
    assert "secret" not in str(reported)


def test_the_sentence_is_the_one_that_the_job_itself_has_after_a_pass(member, project, fake):
    fake.set_capacity(4)
    running(project, 3)
    jobs = [queued(project, 2), queued(project, 1)]
    queue.run_pass()
    for job in jobs:
        job.refresh_from_db()
        assert why(member, job)["sentence"] == job.message
