"""Extensions of run time: permissions, limits, and that each request counts once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.actions.jobs.extend import extend_cluster, extend_job
from jobs.errors import (
    ConflictError,
    IdempotencyConflictError,
    JobAlreadyFinalError,
    OverLimitError,
    PermissionDeniedError,
)
from jobs.ground import clock
from jobs.limits import walltime_of
from jobs.models import Cluster
from jobs.policies.idle import IdlePolicy
from jobs.statuses import ClusterStatus, JobStatus, Role
from tests.factories import make_actor, make_attempt, make_job, make_project, make_spec

pytestmark = pytest.mark.django_db
HOUR = 3600


@pytest.fixture
def project():
    return make_project("rl")


@pytest.fixture
def maintainer(project):
    return make_actor(project, Role.MAINTAINER)


@pytest.fixture
def job(project):
    spec = make_spec(portal={"max_duration": "2h"})
    return make_job(project, status=JobStatus.RUNNING, spec=spec)


@pytest.fixture
def cluster(project):
    """Create a warm cluster that became idle five minutes ago, with ten minutes to wait."""
    attempt = make_attempt(make_job(project, status=JobStatus.SUCCEEDED), ended_at=clock.now())
    Cluster.objects.filter(pk=attempt.cluster_id).update(
        status=ClusterStatus.UP,
        is_reusable=True,
        idle_since=clock.now() - timedelta(minutes=5),
        idle_policy={"minutes": 10},
    )
    return Cluster.objects.get(pk=attempt.cluster_id)


@pytest.mark.feature("P6.1")
def test_an_extension_adds_to_what_the_job_may_run_and_says_who_gave_it(job, maintainer):
    extend_job(maintainer, job, HOUR)
    extend_job(maintainer, job, 30 * 60)
    assert walltime_of(job) == 3.5 * HOUR
    event = job.events.filter(verb="extend").latest("pk")
    name = maintainer.user.get_username()
    assert event.message == f"Extended by 30 min by {name}: it may run for 3 h 30 min."
    assert event.actor == maintainer.user


def test_the_same_extension_requested_twice_is_made_once(job, maintainer):
    for _ in range(2):
        extend_job(maintainer, job, HOUR, idempotency_key="k")
    assert job.extended_s == HOUR
    with pytest.raises(IdempotencyConflictError):
        extend_job(maintainer, job, 2 * HOUR, idempotency_key="k")
    other = make_job(job.project, status=JobStatus.RUNNING, spec=job.spec)
    extend_job(maintainer, other, HOUR, idempotency_key="k")
    assert other.extended_s == HOUR


@pytest.mark.feature("P6.1")
def test_no_extension_exceeds_what_an_administrator_allows(job, project):
    project.max_duration_s = 3 * HOUR
    project.save()
    admin = make_actor(project, Role.ADMIN)
    with pytest.raises(OverLimitError, match=r"at most 1 h more.* 3 h, the limit of project rl"):
        extend_job(admin, job, HOUR + 1)
    extend_job(admin, job, HOUR)
    with pytest.raises(OverLimitError, match="gets no more"):
        extend_job(admin, job, 1)


def test_a_job_that_has_the_limit_already_gets_no_more(project, maintainer, settings):
    settings.MPORTAL_MAX_DURATION_S = HOUR
    job = make_job(project, status=JobStatus.RUNNING)
    with pytest.raises(OverLimitError, match="limit of this installation"):
        extend_job(maintainer, job, 60)


def test_members_extend_their_own_jobs_only(job, project):
    member = make_actor(project, Role.MEMBER)
    with pytest.raises(PermissionDeniedError, match="extend others' jobs"):
        extend_job(member, job, HOUR)
    own = make_job(project, status=JobStatus.QUEUED, spec=job.spec, submitted_by=member.user)
    assert extend_job(member, own, HOUR).extended_s == HOUR


@pytest.mark.parametrize(
    ("status", "error"),
    [(JobStatus.SUCCEEDED, JobAlreadyFinalError), (JobStatus.STOPPING, ConflictError)],
)
def test_a_job_that_ends_is_not_extended(project, maintainer, status, error):
    job = make_job(project, status=status, spec=make_spec(portal={"max_duration": "2h"}))
    with pytest.raises(error):
        extend_job(maintainer, job, HOUR)


def test_a_job_without_a_limit_has_nothing_to_extend(project, maintainer):
    job = make_job(project, status=JobStatus.RUNNING)
    with pytest.raises(ConflictError, match="no time limit"):
        extend_job(maintainer, job, HOUR)


def test_an_idle_cluster_is_kept_for_longer_however_often_that_is_requested(cluster, maintainer):
    for _ in range(2):
        extend_cluster(maintainer, cluster, HOUR)
    cluster.refresh_from_db()
    until = IdlePolicy.from_dict(cluster.idle_policy).until
    assert until is not None
    assert abs(until - clock.now() - timedelta(hours=1)) < timedelta(seconds=5)
    job = cluster.attempts.get().job
    assert job.events.filter(verb="cluster_extend", actor=maintainer.user).exists()


def test_less_time_than_it_has_already_changes_nothing(cluster, maintainer):
    extend_cluster(maintainer, cluster, 60)
    cluster.refresh_from_db()
    assert cluster.idle_policy == {"minutes": 10}


def test_no_cluster_is_kept_beyond_what_an_administrator_allows(cluster, maintainer, settings):
    settings.MPORTAL_MAX_IDLE_MINUTES = 30
    extend_cluster(maintainer, cluster, 20 * 60)
    with pytest.raises(OverLimitError, match="at most 30 min"):
        extend_cluster(maintainer, cluster, 26 * 60)


def test_a_cluster_that_does_not_wait_is_not_extended(cluster, maintainer):
    Cluster.objects.update(idle_since=None)
    with pytest.raises(ConflictError, match="does not wait for a job"):
        extend_cluster(maintainer, cluster, HOUR)


def test_members_extend_the_clusters_that_their_own_jobs_made(cluster, project):
    member = make_actor(project, Role.MEMBER)
    with pytest.raises(PermissionDeniedError):
        extend_cluster(member, cluster, HOUR)
    job = cluster.attempts.get().job
    job.submitted_by = member.user
    job.save()
    assert extend_cluster(member, cluster, HOUR).idle_policy["until"]
