"""A request for every operation of the API that changes something, and the rows it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.test import Client

from jobs.actions.attempts.open_gateway import open_session
from jobs.actions.projects.saved_views import save_view
from jobs.actions.projects.secrets import set_secret
from jobs.ground import clock
from jobs.models import (
    Budget,
    Cluster,
    Job,
    Pool,
    Project,
    Queue,
    Quota,
    StrayCluster,
    User,
    UserSession,
)
from jobs.permissions import Actor
from jobs.statuses import Carrier, ClusterStatus, JobKind, JobStatus, Role
from tests.factories import (
    TEMPLATE,
    make_array,
    make_attempt,
    make_job,
    make_member,
    make_schedule,
    make_spec,
    make_template,
    make_token,
    make_user,
)
from tests.unit.backends.clouds.test_clouds import AWS_PAIR

SECRET = "hunter2/" * 5  # as long as a key of AWS
SPEC = f"name: hello\nrun: echo hello\nenvs: {{KEY: {SECRET}}}\n"
Parts = dict[str, Any]
Needs = Callable[[Project, User], Parts]


def nothing(_project: Project, _user: User) -> Parts:
    return {}


@dataclass(frozen=True)
class Operation:
    """`verb` is its name in the audit log; `needs` makes rows and returns parts of the path.

    A `body` that depends on these rows is a function of the parts.
    """

    verb: str
    body: Any = field(default_factory=dict)
    needs: Needs = nothing
    query: str = ""


def of_job(**fields: Any) -> Needs:
    return lambda project, user: {"job_id": make_job(project, submitted_by=user, **fields).pk}


def of_schedule(**fields: Any) -> Needs:
    def make(project: Project, user: User) -> Parts:
        return {"schedule_name": make_schedule(project, owner=user, **fields).name}

    return make


def of_array(status: JobStatus) -> Needs:
    def make(project: Project, user: User) -> Parts:
        array = make_array(project)
        ended_at = clock.now() if status == JobStatus.FAILED else None
        array.jobs.update(status=status, ended_at=ended_at, submitted_by=user)
        return {"array_id": array.pk}

    return make


def of_attempt(project: Project, user: User) -> Parts:
    job = make_job(project, status=JobStatus.RUNNING, submitted_by=user)
    make_attempt(job, contacted_at=clock.now(), carrier=Carrier.PUSH)
    return {"job_id": job.pk}


def of_open_job(project: Project, user: User) -> Parts:
    Project.objects.filter(pk=project.pk).update(laptops_may_attach=True)
    parts = of_attempt(project, user)
    Job.objects.filter(pk=parts["job_id"]).update(kind=JobKind.MONARCH)
    return parts


def of_session(project: Project, user: User) -> Parts:
    parts = of_open_job(project, user)
    session, _ = open_session(Actor(user), Job.objects.get(pk=parts["job_id"]))
    return {**parts, "session_id": session.pk}


def of_cluster(project: Project, user: User) -> Parts:
    job = make_job(project, status=JobStatus.SUCCEEDED, submitted_by=user)
    attempt = make_attempt(job, ended_at=clock.now())
    Cluster.objects.filter(pk=attempt.cluster_id).update(
        status=ClusterStatus.UP,
        is_reusable=True,
        idle_since=clock.now() - timedelta(minutes=5),
        idle_policy={"minutes": 10},
    )
    return {"cluster_name": attempt.cluster.name}


def of_view(project: Project, user: User) -> Parts:
    return {"view_id": save_view(Actor(user), project, "bad", "status=FAILED").pk}


def of_stray(_project: Project, _user: User) -> Parts:
    row = StrayCluster.objects.create(name="mpx-lost", backend_name="fake", kind="own", seen={})
    return {"cluster_name": row.name}


def of_member(project: Project, _user: User) -> Parts:
    return {"username": make_member(project, Role.VIEWER).username}


def of_secret(project: Project, user: User) -> Parts:
    return {"name": set_secret(Actor(user), project, "OLD", SECRET).name}


def of_budget(project: Project, user: User) -> Parts:
    Budget.objects.create(project=project, usd=5, set_by=user)
    return {}


def of_archived(project: Project, _user: User) -> Parts:
    Project.objects.filter(pk=project.pk).update(archived_at=clock.now())
    return {}


def of_template(project: Project, _user: User) -> Parts:
    return {"template_name": make_template(project, "grid").name}


def of_shared_template(_project: Project, _user: User) -> Parts:
    return {"template_name": make_template(None, "grid").name}


def of_token(_project: Project, user: User) -> Parts:
    return {"token_id": make_token(user)[0].pk}


def of_user(_project: Project, _user: User) -> Parts:
    nora = make_user("nora")
    Client().force_login(nora)
    return {"username": "nora", "session_id": UserSession.objects.get(user=nora).public_id}


def of_pool(_project: Project, _user: User) -> Parts:
    return {"name": Pool.objects.create(name="big", backend_name="fake").name}


def of_queue(_project: Project, _user: User) -> Parts:
    return {"name": Queue.objects.create(name="night").name}


def of_quota(project: Project, _user: User) -> Parts:
    return {"quota_id": Quota.objects.create(project=project, caps={"jobs": 1}).pk}


QUEUED = of_job()
LIMITED = make_spec(portal={"max_duration": "2h"})

OPERATIONS: dict[tuple[str, str], Operation] = {
    ("patch", "me"): Operation("set_time_format", {"time_zone": "Asia/Tokyo"}),
    ("post", "tokens"): Operation("create_token", {"name": "laptop"}),
    ("delete", "token"): Operation("revoke_token", needs=of_token),
    ("post", "users"): Operation("invite_user", {"username": "nora"}),
    ("patch", "user"): Operation("change_user", {"is_active": False}, of_user),
    ("post", "user_link"): Operation("create_sign_in_link", needs=of_user),
    ("delete", "user_sessions"): Operation("end_sessions", needs=of_user),
    ("delete", "user_session"): Operation("end_sessions", needs=of_user),
    ("post", "projects"): Operation("make_project", {"slug": "arms"}),
    ("patch", "project"): Operation("rename_project", {"name": "Arms"}),
    ("delete", "project"): Operation("delete_project", query="?confirm=rl"),
    ("post", "project_archive"): Operation("archive_project"),
    ("post", "project_unarchive"): Operation("unarchive_project", needs=of_archived),
    ("put", "limits"): Operation("set_limits", {"max_idle_minutes": 30}),
    ("put", "member"): Operation("set_role", {"role": "maintainer"}, of_member),
    ("delete", "member"): Operation("remove_member", needs=of_member),
    ("post", "jobs"): Operation("submit", {"spec": SPEC}),
    ("post", "batch"): Operation("submit", {"specs": [SPEC]}),
    ("post", "bulk"): Operation(
        "cancel", lambda parts: {"action": "cancel", "jobs": [parts["job_id"]]}, QUEUED
    ),
    ("post", "array_cancel"): Operation("cancel", needs=of_array(JobStatus.QUEUED)),
    ("post", "array_rerun_failed"): Operation("rerun_failed", needs=of_array(JobStatus.FAILED)),
    ("post", "views"): Operation("save_view", {"name": "bad", "query": "status=FAILED"}),
    ("delete", "view"): Operation("delete_view", needs=of_view),
    ("patch", "job"): Operation("label", {"labels": {"team": "rl"}}, QUEUED),
    ("delete", "job"): Operation("delete_job", needs=of_job(status=JobStatus.SUCCEEDED)),
    ("post", "cancel"): Operation("cancel", needs=QUEUED),
    ("post", "hold"): Operation("hold", needs=QUEUED),
    ("post", "release"): Operation("release", needs=of_job(held=True)),
    ("post", "prioritize"): Operation("prioritize", {"priority": 60}, QUEUED),
    ("post", "extend"): Operation(
        "extend", {"duration": "1h"}, of_job(status=JobStatus.RUNNING, spec=LIMITED)
    ),
    ("post", "rerun"): Operation("rerun", needs=of_job(status=JobStatus.FAILED)),
    ("post", "gateway_sessions"): Operation("open_gateway_session", needs=of_open_job),
    ("delete", "gateway_session"): Operation("end_gateway_session", needs=of_session),
    ("post", "stacks"): Operation("stacks", {"rank": 0}, of_attempt),
    ("post", "all_stacks"): Operation("stacks", needs=of_attempt),
    ("post", "uploads"): Operation("upload", b"a folder"),
    ("put", "secret"): Operation("set_secret", {"value": SECRET}),
    ("delete", "secret"): Operation("delete_secret", needs=of_secret),
    ("put", "budget"): Operation("set_budget", {"usd": "10"}),
    ("post", "schedules"): Operation(
        "create_schedule", {"name": "nightly", "spec": SPEC, "cron": "30 2 * * *"}
    ),
    ("patch", "schedule"): Operation("change_schedule", {"spec": SPEC}, of_schedule()),
    ("delete", "schedule"): Operation("delete_schedule", needs=of_schedule()),
    ("post", "schedule_pause"): Operation("pause_schedule", needs=of_schedule()),
    ("post", "schedule_resume"): Operation("resume_schedule", needs=of_schedule(paused=True)),
    ("post", "schedule_run"): Operation("run_schedule", needs=of_schedule()),
    ("post", "cluster_down"): Operation("cluster_down", needs=of_cluster),
    ("post", "cluster_extend"): Operation("cluster_extend", {"duration": "1h"}, of_cluster),
    ("post", "cluster_stop"): Operation("cluster_stop", needs=of_cluster),
    ("post", "any_cluster_down"): Operation("cluster_down", needs=of_stray),
    ("put", "template"): Operation("save_template", {"source": TEMPLATE}, of_template),
    ("delete", "template"): Operation("delete_template", needs=of_template),
    ("post", "template_run"): Operation("submit", {"values": {"nodes": 1}}, of_template),
    ("put", "shared_template"): Operation(
        "save_template", {"source": TEMPLATE}, of_shared_template
    ),
    ("delete", "shared_template"): Operation("delete_template", needs=of_shared_template),
    ("put", "cloud"): Operation("add_cloud", {**AWS_PAIR, "secret_access_key": SECRET}),
    ("delete", "cloud_entry"): Operation("remove_cloud"),
    ("put", "pool"): Operation("set_pool", {"backend": "fake", "caps": {"nodes": 8}}),
    ("delete", "pool"): Operation("delete_pool", needs=of_pool),
    ("put", "queue"): Operation("set_queue", {"rank": 1}, of_queue),
    ("delete", "queue"): Operation("delete_queue", needs=of_queue),
    ("post", "quotas"): Operation("set_quota", {"project": "rl", "caps": {"jobs": 1}}),
    ("delete", "quota"): Operation("delete_quota", needs=of_quota),
    ("put", "weight"): Operation("set_weight", {"weight": 2}),
}
# They answer a POST and change nothing that a caller decides.
CHANGE_NOTHING = {
    ("post", "template_fill_in"),
    ("post", "validate"),
    ("post", "plan"),
    ("post", "plan_batch"),
    ("post", "cloud_check"),
}
# A runner's reports are no actions of a user.
OF_RUNNERS = {("post", "frames"), ("put", "code")}
