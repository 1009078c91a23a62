"""End times of the machines counted for their holders, also where a step takes too long."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.actions.attempts.preempt import evict
from jobs.errors import NotYetGoneError
from jobs.models import Attempt, Cluster, Job
from jobs.queueing.pass_number import begin_pass
from jobs.queueing.snapshot import load_snapshot
from jobs.reconcilers import queue
from jobs.scheduling.snapshot import RunningJob
from jobs.statuses import ClusterStatus, JobStatus
from tests.factories import make_job, make_project
from tests.integration.reconcilers.steps import end_idle, later, status_of

pytestmark = [pytest.mark.django_db, pytest.mark.feature("P5.1")]


@pytest.fixture
def launched(fake) -> Job:
    """Create a job that may run for half an hour, with its machines requested."""
    job = make_job(make_project(), backend_name="fake", duration_s=1800)
    queue.run_pass()
    assert status_of(job) == JobStatus.PROVISIONING
    return job


def holder() -> RunningJob:
    (found,) = load_snapshot().running
    return found


def bound_min(job: Job) -> float:
    """Return the minutes from its attempt's start for which the job is counted to hold machines."""
    ends_s = holder().ends_s
    assert ends_s is not None
    return (ends_s - job.attempts.get().created_at.timestamp()) / 60


def begin_run(job: Job) -> None:
    Attempt.objects.filter(job=job).update(run_started_at=timezone.now())


@pytest.mark.parametrize("minutes", [0, 4, 10])
def test_a_job_is_counted_until_the_same_moment_before_and_after_its_run_begins(
    launched, time_machine, minutes
):
    """Keep the time fixed: else jobs admitted before it would move it, and more could follow."""
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
    """Create a warm cluster with ten idle minutes that hangs when it is to be stopped."""

    def hang(name: str) -> None:
        raise NotYetGoneError(f"{name} is still being switched off.")

    monkeypatch.setattr(type(fake), "stop_machines", lambda _, name: hang(name))
    run_through(submit_kept(idle={"minutes": 10, "then": "stop"}))
    return Cluster.objects.get()


def ending() -> list[str]:
    return [each.name for each in load_snapshot().warm if each.is_ending]


@pytest.mark.parametrize("why", ["idle for too long", "another job needs it"])
def test_machines_that_hang_in_being_switched_off_are_not_counted_on_for_ever(
    hangs, time_machine, why
):
    """Count the machines for ten minutes, whenever the stop began."""
    if why == "idle for too long":
        later(time_machine, minutes=60)
        end_idle()
    else:
        needs = make_job(make_project(), backend_name="fake")
        evict(needs, [hangs.name], planned_by=begin_pass())
    hangs.refresh_from_db()
    assert hangs.status == ClusterStatus.STOPPING
    for minutes in (0, 9):
        later(time_machine, minutes=minutes)
        assert ending() == [hangs.name]
        assert list(load_snapshot().running) == []
    later(time_machine, minutes=2)
    assert ending() == []
    assert (holder().is_leaving, holder().ends_s) == (False, None)


@pytest.mark.feature("S2.8")
def test_no_further_cluster_is_ended_in_a_pool_where_one_hangs(
    hangs, fake, submit_kept, run_through, time_machine
):
    evict(make_job(make_project(), backend_name="fake"), [hangs.name], planned_by=begin_pass())
    later(time_machine, minutes=11)
    run_through(submit_kept())
    idle = Cluster.objects.exclude(pk=hangs.pk).get(idle_since__isnull=False)
    fake.set_capacity(2)
    queue.run_pass()
    idle.refresh_from_db()
    assert (idle.status, idle.release_requested_at) == (ClusterStatus.UP, None)
