"""Idle warm clusters: stopped and terminated on time, and never twice."""

from __future__ import annotations

import pytest

from jobs.actions.attempts.start_attempt import start_attempt
from jobs.actions.jobs.cancel import cancel_job
from jobs.backends.fake.backend import FakePlan
from jobs.errors import BackendError
from jobs.models import Cluster
from jobs.reconcilers import autostop, queue
from jobs.statuses import ClusterStatus, JobStatus, Role
from tests.factories import make_actor
from tests.integration.reconcilers.steps import end_idle, later, push, status_of, verbs

pytestmark = pytest.mark.django_db


@pytest.mark.feature("P6.1")
def test_an_idle_cluster_is_terminated_on_time_and_what_a_job_takes_to_set_up_is_not_idleness(
    fake, submit_kept, tick, run_through, time_machine
):
    run_through(submit_kept())
    fake.set_plan(FakePlan(start_s=7200))
    second = submit_kept(idle={"minutes": 5})
    tick()
    later(time_machine, hours=1)
    end_idle()
    assert status_of(second) in {JobStatus.PROVISIONING, JobStatus.SETTING_UP}
    assert fake.existing()
    cancel_job(make_actor(second.project, Role.ADMIN), second)
    fake.finish(Cluster.objects.get().name)
    push(fake, second)
    tick()
    later(time_machine, minutes=4, seconds=50)
    end_idle()
    assert fake.existing()
    later(time_machine, seconds=20)
    end_idle()
    assert fake.existing() == []
    assert Cluster.objects.get().status == ClusterStatus.GONE
    note = second.events.get(verb="cluster_ended")
    assert note.message.endswith("is terminated. No job was on it for 5 min.")


@pytest.mark.feature("P6.3")
def test_a_cluster_is_switched_off_first_and_taken_down_later(
    fake, submit_kept, run_through, time_machine
):
    run_through(submit_kept(idle={"minutes": 5, "then": "stop", "down_after": 60}))
    later(time_machine, minutes=6)
    end_idle()
    cluster = Cluster.objects.get()
    assert cluster.status == ClusterStatus.STOPPED
    assert [seen.status for seen in fake.existing()] == ["STOPPED"]
    later(time_machine, minutes=59)
    end_idle()
    assert fake.existing()
    later(time_machine, minutes=2)
    end_idle()
    assert fake.existing() == []


@pytest.mark.feature("P6.3")
def test_a_job_switches_machines_on_again_that_were_kept_for_it(
    fake, submit_kept, run_through, time_machine
):
    run_through(submit_kept(idle={"minutes": 5, "then": "stop"}))
    later(time_machine, minutes=6)
    end_idle()
    second = run_through(submit_kept())
    assert status_of(second) == JobStatus.SUCCEEDED
    cluster = Cluster.objects.get()
    assert (cluster.status, cluster.stopped_at) == (ClusterStatus.UP, None)


def test_machines_being_switched_off_take_no_job_before_they_are_off(
    fake, submit_kept, run_through, time_machine
):
    fake.set_plan(FakePlan(run_s=0, switch_off_s=30))
    run_through(submit_kept(idle={"minutes": 5, "then": "stop"}))
    later(time_machine, minutes=6)
    end_idle()
    old = Cluster.objects.get()
    assert old.status == ClusterStatus.STOPPING
    second = submit_kept()
    queue.run_pass()
    assert second.attempts.get().cluster != old
    later(time_machine, seconds=40)
    end_idle()
    old.refresh_from_db()
    assert old.status == ClusterStatus.STOPPED


def test_machines_that_cannot_be_switched_off_are_taken_down_instead(
    fake, submit_kept, run_through, time_machine, monkeypatch
):
    def refused(*_args):
        raise BackendError("Slurm keeps no disks.")

    monkeypatch.setattr(type(fake), "stop_machines", refused)
    job = run_through(submit_kept(idle={"minutes": 5, "then": "stop"}))
    later(time_machine, minutes=6)
    end_idle()
    assert fake.existing() == []
    notes = job.events.filter(verb="cluster_ended").values_list("message", flat=True)
    assert "could not be stopped: Slurm keeps no disks." in list(notes)[-1]


def test_who_takes_a_cluster_and_who_ends_it_exclude_each_other(
    submit_kept, run_through, time_machine, monkeypatch
):
    run_through(submit_kept())
    second = submit_kept()
    later(time_machine, minutes=11)
    look_at = autostop._look_at

    def too_late(cluster, backend):
        start_attempt(second)
        look_at(cluster, backend)

    monkeypatch.setattr(autostop, "_look_at", too_late)
    end_idle()
    cluster = second.attempts.get().cluster
    assert (cluster.attempts.count(), cluster.release_requested_at) == (2, None)


def test_a_limit_set_later_holds_for_clusters_that_are_kept_already(
    fake, submit_kept, run_through, time_machine, project, settings
):
    run_through(submit_kept(idle={"minutes": 600}))
    later(time_machine, minutes=30)
    end_idle()
    assert fake.existing()
    settings.MPORTAL_MAX_IDLE_MINUTES = 20
    end_idle()
    assert fake.existing() == []


def test_the_backends_own_stop_is_delayed(fake, submit_kept, tick, run_through):
    run_through(submit_kept(idle={"minutes": 5}))
    cluster = Cluster.objects.get()
    assert fake.backstop(cluster.name) == 35
    run_through(submit_kept(idle={"minutes": 50}))
    for _ in range(3):
        end_idle()
    assert fake.backstop(cluster.name) == 80
    assert verbs(fake).count("autostop") == 1
