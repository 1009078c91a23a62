"""Until when machines are counted for who has them, also where that takes longer than it should."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.actions.attempts.preempt import give_back
from jobs.errors import NotYetGoneError
from jobs.models import Attempt, Cluster, Job, Queue
from jobs.queueing.pass_number import begin_pass
from jobs.queueing.snapshot import load_snapshot
from jobs.reconcilers import provisioning, queue, running
from jobs.scheduling.snapshot import RunningJob
from jobs.statuses import ClusterStatus, JobStatus
from tests.factories import make_job, make_project
from tests.integration.reconcilers.steps import end_idle, later, push, status_of

pytestmark = [pytest.mark.django_db, pytest.mark.feature("P5.1")]


@pytest.fixture
def launched(fake) -> Job:
    """A job that may run for half an hour, whose machines are asked for."""
    job = make_job(make_project(), backend_name="fake", duration_s=1800)
    queue.run_pass()
    assert status_of(job) == JobStatus.PROVISIONING
    return job


def holder() -> RunningJob:
    (found,) = load_snapshot().running
    return found


def bound_min(job: Job) -> float:
    """Minutes from the start of its attempt for which it is counted to hold its machines."""
    ends_s = holder().ends_s
    assert ends_s is not None
    return (ends_s - job.attempts.get().created_at.timestamp()) / 60


def begin_run(job: Job) -> None:
    Attempt.objects.filter(job=job).update(run_started_at=timezone.now())


@pytest.mark.parametrize("minutes", [0, 4, 10])
def test_a_job_is_counted_until_the_same_moment_before_and_after_its_run_begins(
    launched, time_machine, minutes
):
    """Else those who were let in before a moment would move it, and others could follow them."""
    assert bound_min(launched) == pytest.approx(40)
    later(time_machine, minutes=minutes)
    begin_run(launched)
    assert bound_min(launched) == pytest.approx(40, abs=0.01)


def test_a_run_that_begins_later_than_was_counted_is_counted_for_all_of_its_time(
    launched, time_machine
):
    later(time_machine, minutes=25)
    assert bound_min(launched) == pytest.approx(40)
    begin_run(launched)
    assert bound_min(launched) == pytest.approx(55, abs=0.01)


def test_who_is_late_is_counted_as_if_it_took_twice_as_long_as_it_is_late(launched, time_machine):
    expected = {39: 40, 41: 50, 49: 50, 51: 70, 69: 70, 71: 110, 109: 110, 111: 190}
    began_at, found = timezone.now(), {}
    for minute in expected:
        time_machine.move_to(began_at + timedelta(minutes=minute))
        found[minute] = round(bound_min(launched))
    assert found == expected


@pytest.fixture
def hangs(fake, submit_kept, run_through, monkeypatch) -> Cluster:
    """A cluster that is kept for ten minutes, and hangs when it is to be switched off."""

    def hang(name: str) -> None:
        raise NotYetGoneError(f"{name} is still being switched off.")

    monkeypatch.setattr(type(fake), "stop_machines", lambda _, name: hang(name))
    run_through(submit_kept(idle={"minutes": 10, "then": "stop"}))
    return Cluster.objects.get()


@pytest.mark.parametrize("idle_min", [11, 60])
def test_machines_that_hang_in_being_switched_off_are_not_counted_on_for_ever(
    hangs, submit_kept, time_machine, idle_min
):
    """Ten minutes long, whenever that began: also of a cluster that was left to somebody before."""
    wants = submit_kept(next_try_at=timezone.now() + timedelta(hours=9))
    if idle_min < 20:
        wants.delete()
    later(time_machine, minutes=idle_min)
    end_idle()
    Job.objects.filter(pk=wants.pk).update(held=True)
    end_idle()
    hangs.refresh_from_db()
    assert hangs.status == ClusterStatus.STOPPING
    for minutes in (0, 9):
        later(time_machine, minutes=minutes)
        assert holder().is_leaving
        assert bound_s_from_now() == pytest.approx(60 * (10 - minutes), abs=5)
    later(time_machine, minutes=2)
    assert not holder().is_leaving
    assert holder().ends_s is None


def test_machines_that_are_given_back_before_their_time_are_counted_for_ten_minutes(
    hangs, time_machine
):
    needs = make_job(make_project(), backend_name="fake")
    give_back(needs, [hangs.name], planned_by=begin_pass())
    hangs.refresh_from_db()
    assert hangs.status == ClusterStatus.STOPPING
    later(time_machine, minutes=1)
    assert bound_s_from_now() == pytest.approx(60 * 9, abs=5)


def bound_s_from_now() -> float:
    ends_s = holder().ends_s
    assert ends_s is not None
    return ends_s - timezone.now().timestamp()


def test_a_launch_that_hangs_lets_guests_of_a_kept_cluster_pass_the_first_a_few_times_at_most(
    launched, fake, submit_kept, time_machine
):
    fake.set_capacity(2)
    later(time_machine, minutes=45)
    goes_on = _follower(fake, submit_kept)
    goes_on()
    Queue.objects.create(name="urgent", rank=10)
    first = make_job(make_project(), backend_name="fake", queue_name="urgent")
    begin = timezone.now()
    while status_of(first) == JobStatus.QUEUED:
        assert timezone.now() - begin < timedelta(hours=4)
        later(time_machine, minutes=6)
        goes_on()
        later(time_machine, minutes=14)
        end_idle()
        queue.run_pass()
    assert status_of(launched) == JobStatus.PROVISIONING


def _follower(fake, submit_kept) -> Callable[[], None]:
    """Submits a job that keeps its cluster, and brings it to its end if it starts."""

    def submit() -> None:
        job = submit_kept(portal={"max_duration": "30m"}, duration_s=1800)
        queue.run_pass()
        if status_of(job) == JobStatus.PROVISIONING:
            for reconciler in (provisioning, running):
                reconciler.step(job.pk)
                push(fake, job)
            running.step(job.pk)
            assert status_of(job) == JobStatus.SUCCEEDED

    return submit
