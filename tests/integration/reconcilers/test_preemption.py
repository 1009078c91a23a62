"""One job preempts another: stopped with its grace, queued again, and the messages of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from jobs.actions.attempts.preempt import preempt
from jobs.actions.jobs.cancel import cancel_job
from jobs.actions.sharing.quotas import Whose, set_quota
from jobs.backends.fake.backend import FakePlan
from jobs.errors import BackendError, StaleJobError
from jobs.models import Attempt, Cluster, Job, JobEvent, Pool, Project, Queue, Quota, UseAccount
from jobs.permissions import Actor
from jobs.queueing.pass_number import begin_pass
from jobs.reconcilers import queue, stopping
from jobs.statuses import ClusterStatus, JobStatus, StopReason, WaitReason
from tests.factories import make_job, make_project, make_spec, make_user, set_default_queue
from tests.integration.reconcilers.steps import later, push, status_of

pytestmark = [pytest.mark.django_db, pytest.mark.feature("P5.4")]


@pytest.fixture
def pool(fake) -> Pool:
    """Create a pool of two nodes, an urgent queue and one for all other jobs."""
    fake.set_capacity(8)
    made = Pool.objects.create(
        name="gpus", backend_name="fake", caps={"nodes": 2}, preempts_by_rank=True
    )
    set_default_queue(pool=made)
    Queue.objects.create(name="urgent", rank=10, pool=made)
    return made


def submit(project: Project, nodes: int = 1, *, preemptible: bool = True, **fields: Any) -> Job:
    portal = {"preemptible": preemptible, **fields.pop("portal", {})}
    spec = make_spec(num_nodes=nodes, portal=portal)
    return make_job(project, num_nodes=nodes, spec=spec, **fields)


@pytest.fixture
def run(fake, tick) -> Callable[..., Job]:
    """Return a function that submits a job and lets it run."""

    def make(project: Project, nodes: int = 1, **fields: Any) -> Job:
        job = submit(project, nodes, **fields)
        tick()
        push(fake, job)
        tick()
        assert status_of(job) == JobStatus.RUNNING
        return job

    return make


def reported(job: Job) -> list[str]:
    return list(JobEvent.objects.filter(job=job).values_list("message", flat=True))


def test_a_victim_is_stopped_waits_again_and_goes_on_when_the_other_has_ended(
    fake, tick, run, pool, project
):
    victim = run(project, 2)
    created_at = victim.created_at
    urgent = submit(project, 2, queue_name="urgent")
    queue.run_pass()
    assert status_of(victim) == JobStatus.STOPPING
    assert (victim.stop_reason, victim.preempted_by) == (StopReason.PREEMPTED, urgent)
    urgent.refresh_from_db()
    said = f"Waits for 2 nodes of job {victim.pk}, which is being stopped for it."
    assert urgent.message == said
    assert said in reported(urgent)
    assert f"Preempted by job {urgent.pk}." in reported(victim)
    stopping.step(victim.pk)
    assert status_of(victim) == JobStatus.STOPPING
    stopping.step(victim.pk)
    assert status_of(victim) == JobStatus.QUEUED
    assert victim.wait_reason == WaitReason.PREEMPTED
    assert victim.message == f"Preempted by job {urgent.pk}."
    assert [verb for verb, _ in fake.calls()] == ["launch", "stop"]
    tick()
    tick()
    assert status_of(urgent) == JobStatus.SETTING_UP
    assert status_of(victim) == JobStatus.QUEUED
    assert victim.wait_reason == WaitReason.PREEMPTED
    assert victim.message.startswith(f"Was preempted by job {urgent.pk}. Needs 2 nodes;")
    push(fake, urgent)
    tick()
    cancel_job(Actor(urgent.submitted_by), urgent)
    for _ in range(5):
        tick()
    assert status_of(victim) == JobStatus.SETTING_UP
    assert (victim.failure_count, victim.recovery_count) == (0, 0)
    assert victim.created_at == created_at
    assert (victim.preempted_by, victim.stop_reason, victim.message) == (None, "", "")
    reasons = victim.attempts.order_by("number").values_list("stop_reason", flat=True)
    assert list(reasons) == [StopReason.PREEMPTED, ""]


def test_a_victim_is_stopped_also_where_each_person_and_the_queue_have_quotas(run, pool, project):
    root = Actor(make_user("root", is_superuser=True))
    set_quota(root, Whose(project=project.slug, per_person=True), {"jobs": 5})
    set_quota(root, Whose(queue="urgent"), {"nodes": 5})
    victim = run(project, 2)
    submit(project, 2, queue_name="urgent", portal={"concurrency": {"group": "eval", "max": 3}})
    queue.run_pass()
    assert status_of(victim) == JobStatus.STOPPING


def test_passes_while_a_victim_winds_down_stop_no_other_job(tick, run, fake, pool, project):
    fake.set_plan(FakePlan(stop_s=3600, tear_down_s=0))
    first, second = run(project), run(project)
    submit(project, queue_name="urgent")
    for _ in range(3):
        queue.run_pass()
        stopping.step(second.pk)
    assert (status_of(first), status_of(second)) == (JobStatus.RUNNING, JobStatus.STOPPING)
    # Its program is over, and the machines are still there; then the job waits already.
    Attempt.objects.filter(job=second).update(
        ended_at=timezone.now(), stop_reason=StopReason.CANCELLED_BY_USER
    )
    queue.run_pass()
    stopping.step(second.pk)
    assert status_of(second) == JobStatus.QUEUED
    queue.run_pass()
    assert status_of(first) == JobStatus.RUNNING


def test_its_use_is_charged_once_and_its_cluster_given_back_though_it_reuses(
    tick, run, pool, project
):
    victim = run(project, 2, portal={"reuse": True, "idle": {"minutes": 10}})
    Attempt.objects.update(created_at=timezone.now() - timezone.timedelta(hours=1))
    submit(project, 2, queue_name="urgent")
    for _ in range(3):
        tick()
    assert status_of(victim) == JobStatus.QUEUED
    assert Cluster.objects.order_by("pk")[0].status == ClusterStatus.GONE
    assert UseAccount.objects.get().unit_hours == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize("change", ["job says no", "pool says no", "names its cluster"])
def test_no_job_is_stopped_that_is_not_preemptible_or_without_an_administrators_setting(
    change, tick, run, pool, project
):
    says_so = change != "job says no"
    portal = {}
    if change == "pool says no":
        Pool.objects.update(preempts_by_rank=False)
    holder = run(project, 2, preemptible=says_so, portal=portal)
    if change == "names its cluster":
        holder.request_options["cluster"] = Cluster.objects.get().name
        holder.save(update_fields=["request_options"])
    urgent = submit(project, 2, queue_name="urgent")
    tick()
    assert status_of(holder) == JobStatus.RUNNING
    urgent.refresh_from_db()
    assert urgent.message == "Needs 2 nodes; 0 of 2 are free on gpus."


def test_a_queue_says_it_for_its_jobs(tick, run, pool, project):
    set_default_queue(preemptible=True)
    victim = run(project, 2, preemptible=False)
    submit(project, 2, queue_name="urgent")
    queue.run_pass()
    assert status_of(victim) == JobStatus.STOPPING


@pytest.mark.feature("P5.1")
def test_a_project_takes_its_nominal_part_back_from_who_borrowed_it(tick, run, pool, project):
    Pool.objects.update(preempts_by_rank=False, reclaim=True)
    other = make_project("nlp")
    for each in (project, other):
        Quota.objects.create(project=each, pool=pool, caps={"nodes": 2}, nominal={"nodes": 1})
    own, borrowed = run(project), run(project)
    claim, more = submit(other), submit(other)
    for _ in range(4):
        tick()
    assert status_of(claim) == JobStatus.SETTING_UP
    assert (status_of(own), status_of(borrowed)) == (JobStatus.RUNNING, JobStatus.QUEUED)
    assert status_of(more) == JobStatus.QUEUED


def test_an_older_pass_stops_no_job(run, pool, project):
    victim = run(project, 2)
    urgent = submit(project, 2, queue_name="urgent")
    older = begin_pass()
    begin_pass()
    with pytest.raises(StaleJobError):
        preempt(urgent, [victim.pk], planned_by=older)
    assert status_of(victim) == JobStatus.RUNNING


def test_a_victim_that_is_cancelled_while_it_winds_down_is_not_queued_again(
    tick, run, pool, project
):
    victim = run(project, 2)
    submit(project, 2, queue_name="urgent")
    queue.run_pass()
    seen = Job.objects.get(pk=victim.pk)
    cancel_job(Actor(victim.submitted_by), victim)
    # Who came before, and has not seen the cancel, changes nothing.
    Attempt.objects.update(ended_at=timezone.now(), stop_reason=StopReason.CANCELLED_BY_USER)
    with pytest.raises(StaleJobError):
        stopping.finish_stopping(seen, seen.attempts.get())
    tick()
    assert status_of(victim) == JobStatus.CANCELLED
    assert victim.stop_reason == StopReason.CANCELLED_BY_USER


@pytest.mark.parametrize(
    ("verdict", "retry", "ends"),
    [
        (StopReason.COMPLETED, {}, (JobStatus.SUCCEEDED, 0)),
        (StopReason.USER_CODE, {}, (JobStatus.FAILED, 0)),
        (StopReason.USER_CODE, {"max_attempts": 2}, (JobStatus.QUEUED, 1)),
        (StopReason.WORKER_LOST, {}, (JobStatus.QUEUED, 0)),
    ],
)
def test_a_victim_whose_program_ended_before_it_was_queried_goes_by_its_own_verdict(
    run, pool, project, verdict, retry, ends
):
    victim = run(project, 2, portal={"retry": retry})
    submit(project, 2, queue_name="urgent")
    queue.run_pass()
    Attempt.objects.filter(job=victim).update(ended_at=timezone.now(), stop_reason=verdict)
    stopping.step(victim.pk)
    assert (status_of(victim), victim.failure_count) == ends
    assert victim.recovery_count == 0


@pytest.mark.usefixtures("pool")
def test_no_further_victim_is_stopped_where_machines_do_not_come_free(
    fake, tick, run, project, time_machine, monkeypatch
):
    def refused(*_args: Any) -> None:
        raise BackendError("The cloud says no.")

    first, second = run(project), run(project)
    urgent = submit(project, queue_name="urgent")
    with monkeypatch.context() as patch:
        patch.setattr(type(fake), "tear_down", refused)
        for _ in range(4):
            tick()
        assert (status_of(second), status_of(first)) == (JobStatus.QUEUED, JobStatus.RUNNING)
        later(time_machine, minutes=11)
        tick()
        assert (status_of(urgent), status_of(first)) == (JobStatus.QUEUED, JobStatus.RUNNING)
    # Machines are given back again: others may be preempted, too.
    later(time_machine, minutes=11)
    for _ in range(4):
        tick()
    assert status_of(urgent) != JobStatus.QUEUED
    another = submit(project, queue_name="urgent")
    tick()
    assert (another.pk, status_of(first)) == (first.preempted_by_id, JobStatus.STOPPING)


def test_preempted_machines_of_a_full_backend_go_to_the_urgent_job_and_to_no_job_without_a_pool(
    fake, tick, run, pool, project
):
    fake.set_capacity(2)
    low = Queue.objects.create(name="low", pool=pool)
    set_default_queue(pool=None)
    victims = [run(project, queue_name=low.name) for _ in range(2)]
    without_pool = [submit(project) for _ in range(3)]
    urgent = submit(project, 2, queue_name="urgent")
    for _ in range(6):
        tick()
    assert [status_of(job) for job in victims] == [JobStatus.QUEUED] * 2
    assert [status_of(job) for job in without_pool] == [JobStatus.QUEUED] * 3
    assert status_of(urgent) == JobStatus.SETTING_UP
