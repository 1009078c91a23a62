"""Gateway sessions over REST: who may open and end which, in which jobs, and how many."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.models import Attempt, AuditEntry, GatewayHead, GatewaySession, Job, Project, User
from jobs.reconcilers import gateway as reconciler
from jobs.statuses import Carrier, GatewayState, JobKind, JobStatus, Role
from tests.factories import make_attempt, make_job, make_member
from tests.integration.api.conftest import Caller, caller_for
from tests.integration.api.stack_calls import heartbeat

pytestmark = pytest.mark.django_db


def sessions_of(job: Job) -> str:
    return f"/projects/rl/jobs/{job.pk}/gateway-sessions"


def make_open_job(project: Project, submitter: User, **fields: Any) -> Job:
    """Create a running Monarch job in a project that allows laptops."""
    Project.objects.filter(pk=project.pk).update(laptops_may_attach=True)
    fields = {"status": JobStatus.RUNNING, "kind": JobKind.MONARCH, **fields}
    job = make_job(Project.objects.get(pk=project.pk), submitted_by=submitter, **fields)
    make_attempt(job)
    return job


@pytest.fixture
def member(project: Project) -> Caller:
    return caller_for(make_member(project, Role.MEMBER))


@pytest.fixture
def job(project: Project, member: Caller) -> Job:
    """Create a running job of the member."""
    return make_open_job(project, member.user)


def test_a_ticket_names_the_path_and_the_versions_of_the_workers(member: Caller, job: Job) -> None:
    GatewayHead.objects.create(
        attempt=job.attempts.get(),
        instance="a",
        expires_at=job.created_at,
        hello={"python": "3.11.7", "torchmonarch": "0.7.0"},
    )
    answer = member.post(sessions_of(job))
    assert answer.status_code == 201
    body = answer.json()
    assert body.pop("ticket") != GatewaySession.objects.get().secret_digest
    assert body == {
        "id": GatewaySession.objects.get().pk,
        "expires_in_s": 60,
        "path": "/gateway/v1/session",
        "python": "3.11.7",
        "torchmonarch": "0.7.0",
    }


def test_the_list_names_who_is_attached_and_who_may_end_it(
    member: Caller, viewer: Caller, job: Job
) -> None:
    member.post(sessions_of(job))
    (mine,) = member.get(sessions_of(job)).json()["results"]
    assert (mine["user"], mine["state"], mine["can_end"]) == (
        member.user.get_username(),
        "opening",
        True,
    )
    (seen,) = viewer.get(sessions_of(job)).json()["results"]
    assert not seen["can_end"]


@pytest.mark.parametrize("status", [JobStatus.QUEUED, JobStatus.SUCCEEDED, JobStatus.STOPPING])
def test_a_job_that_does_not_run_has_no_sessions(
    member: Caller, project: Project, status: JobStatus
) -> None:
    job = make_open_job(project, member.user, status=status)
    assert member.post(sessions_of(job)).status_code == 409


@pytest.mark.parametrize(
    "fields", [{"kind": JobKind.PLAIN}, {"carrier": Carrier.PULL}, {"laptops_may_attach": False}]
)
def test_a_job_that_takes_no_programs_says_so(
    member: Caller, project: Project, job: Job, fields: dict[str, Any]
) -> None:
    for rows in (Job.objects.all(), Attempt.objects.all(), Project.objects.all()):
        if set(fields) <= {field.name for field in rows.model._meta.fields}:
            rows.update(**fields)
    answer = member.post(sessions_of(job))
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


def test_a_shell_is_opened_in_a_plain_job_and_the_audit_has_what_it_is_for(
    member: Caller, job: Job
) -> None:
    Job.objects.update(kind=JobKind.PLAIN)
    shell = {
        "kind": "ssh",
        "rank": 1,
        "command": "nvidia-smi -L",
        "forwards": ["6006:localhost:6006"],
    }
    answer = member.post(sessions_of(job), shell)
    assert answer.status_code == 201
    session = GatewaySession.objects.get()
    entry = AuditEntry.objects.get(verb="open_gateway_session")
    assert entry.after == {"session": session.pk, **shell}
    (row,) = member.get(sessions_of(job)).json()["results"]
    assert (row["kind"], row["purpose"]) == ("ssh", "node 1, nvidia-smi -L, -L 6006:localhost:6006")
    # As the next look of the reconciler finds: it may stay.
    reconciler.step(session.pk)
    session.refresh_from_db()
    assert session.ended_at is None


def test_a_sync_is_a_session_of_its_own_kind_in_the_audit_and_the_history(
    member: Caller, job: Job
) -> None:
    Job.objects.update(kind=JobKind.PLAIN)
    assert member.post(sessions_of(job), {"kind": "sync"}).status_code == 201
    session = GatewaySession.objects.get()
    entry = AuditEntry.objects.get(verb="open_gateway_session")
    assert entry.after == {"session": session.pk, "kind": "sync"}
    (row,) = member.get(sessions_of(job)).json()["results"]
    assert (row["kind"], row["purpose"]) == ("sync", "")
    events = member.get(f"/projects/{job.project.slug}/jobs/{job.pk}/events").json()["results"]
    assert f"Gateway session {session.pk} opened: sync." in [each["message"] for each in events]


def test_shells_take_the_rights_and_the_projects_permission_of_programs(
    member: Caller, viewer: Caller, project: Project, job: Job
) -> None:
    shell = {"kind": "ssh"}
    assert viewer.post(sessions_of(job), shell).status_code == 403
    others = make_open_job(project, make_member(project), kind=JobKind.PLAIN)
    assert member.post(sessions_of(others), shell).status_code == 403
    assert member.post(sessions_of(job), {"kind": "telnet"}).status_code == 400
    Project.objects.update(laptops_may_attach=False)
    refused = member.post(sessions_of(job), shell)
    assert refused.status_code == 409
    assert "does not allow shells, and programs of laptops," in refused.json()["detail"]
    Project.objects.update(laptops_may_attach=True)
    Attempt.objects.update(carrier=Carrier.PULL)
    assert member.post(sessions_of(job), shell).status_code == 409


def test_a_job_that_waits_for_laptops_takes_them_in_every_project(
    member: Caller, project: Project, job: Job
) -> None:
    Project.objects.update(laptops_may_attach=False)
    Job.objects.update(request_options={"waits_for_laptops": True})
    assert member.post(sessions_of(job)).status_code == 201


def test_a_members_session_in_anothers_job_takes_a_maintainer(
    member: Caller, project: Project
) -> None:
    job = make_open_job(project, make_member(project))
    assert member.post(sessions_of(job)).status_code == 403
    maintainer = caller_for(make_member(project, Role.MAINTAINER))
    assert maintainer.post(sessions_of(job)).status_code == 201


def test_a_token_that_only_reads_opens_no_session(project: Project, job: Job) -> None:
    reader = caller_for(job.submitted_by, read_only=True)
    assert reader.post(sessions_of(job)).status_code == 403


def test_sessions_of_a_job_and_of_a_user_are_limited(
    member: Caller, project: Project, job: Job, settings: Any
) -> None:
    settings.MPORTAL_GATEWAY_PER_USER, settings.MPORTAL_GATEWAY_PER_JOB = 1, 2
    maintainers = [caller_for(make_member(project, Role.MAINTAINER)) for _ in range(2)]
    assert member.post(sessions_of(job)).status_code == 201
    refusal = member.post(sessions_of(job)).json()
    assert refusal["code"] == "too_many_sessions"
    own = GatewaySession.objects.get()
    assert f"{own.pk} (job {job.pk}, opening)" in refusal["detail"]
    command = f"mportal sessions {job.pk} --project {project.slug} --end {own.pk}"
    assert refusal["detail"].endswith(command)
    assert maintainers[0].post(sessions_of(job)).status_code == 201
    assert maintainers[1].post(sessions_of(job)).status_code == 429


def test_a_user_at_the_limit_is_referred_to_a_session_that_is_away(
    member: Caller, job: Job, settings: Any
) -> None:
    settings.MPORTAL_GATEWAY_PER_USER = 2
    connected, away = (member.post(sessions_of(job)).json()["id"] for _ in range(2))
    sessions = GatewaySession.objects
    sessions.filter(pk=connected).update(state=GatewayState.OPEN)
    sessions.filter(pk=away).update(state=GatewayState.AWAY)
    refusal = member.post(sessions_of(job)).json()["detail"]
    assert f"{away} (job {job.pk}, away), {connected} (job {job.pk}, open)" in refusal
    assert refusal.endswith(f"--end {away}")
    assert sessions.current().count() == 2


def test_a_session_is_ended_by_its_user_and_by_the_jobs_submitter(
    member: Caller, project: Project, job: Job
) -> None:
    maintainer = caller_for(make_member(project, Role.MAINTAINER))
    other = caller_for(make_member(project, Role.MEMBER))
    opened = maintainer.post(sessions_of(job)).json()["id"]
    address = f"{sessions_of(job)}/{opened}"
    assert other.delete(address).status_code == 403
    assert member.delete(address).status_code == 204
    assert GatewaySession.objects.get().state == GatewayState.CLOSED
    assert member.get(f"{sessions_of(job)}").json()["results"][0]["reason"]
    assert member.delete(f"{sessions_of(job)}/0").status_code == 404


def test_the_runner_is_requested_to_connect_as_long_as_there_is_a_session(
    member: Caller, job: Job
) -> None:
    attempt = job.attempts.get()
    assert "gateway" not in heartbeat(attempt)
    opened = member.post(sessions_of(job)).json()["id"]
    assert heartbeat(attempt)["gateway"] is True
    member.delete(f"{sessions_of(job)}/{opened}")
    assert "gateway" not in heartbeat(attempt)
