"""Rows for tests: each call makes one valid row, with the rows that it refers to."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

from django.utils import timezone

from jobs.attempt_tokens import attempt_token_digest
from jobs.models import (
    ApiToken,
    Attempt,
    Cluster,
    Job,
    JobArray,
    LogHead,
    Membership,
    Project,
    Queue,
    Schedule,
    TemplateVersion,
    User,
)
from jobs.models.api_token import token_digest
from jobs.permissions import Actor
from jobs.policies.job_request import JobRequest
from jobs.statuses import FINAL_STATUSES, JobKind, JobStatus, Role
from monarch_client.spec import JobSpec

_numbers = itertools.count(1)


def make_user(username: str | None = None, **fields: Any) -> User:
    """Create a user who can be signed in with `force_login`; no password unless given."""
    password = fields.pop("password", None)
    return User.objects.create_user(
        username or f"user{next(_numbers)}", password=password, **fields
    )


def make_project(slug: str | None = None, **fields: Any) -> Project:
    """Create a project without members."""
    slug = slug or f"project{next(_numbers)}"
    return Project.objects.create(slug=slug, name=fields.pop("name", slug.title()), **fields)


def make_member(project: Project, role: Role = Role.MEMBER, **fields: Any) -> User:
    """Create a user with `role` in `project`."""
    user = make_user(**fields)
    Membership.objects.create(project=project, user=user, role=role)
    return user


def make_actor(
    project: Project | None = None, role: Role = Role.MEMBER, source: str = "203.0.113.7"
) -> Actor:
    """Create a user with `role` in `project`, signed in from `source`."""
    user = make_member(project, role) if project else make_user()
    return Actor(user=user, source=source)


def make_token(user: User, **fields: Any) -> tuple[ApiToken, str]:
    """Create a usable token of `user` and return it with its secret."""
    secret = ApiToken.new_secret()
    name = fields.pop("name", "test")
    return (
        ApiToken.objects.create(user=user, name=name, digest=token_digest(secret), **fields),
        secret,
    )


def set_default_queue(**fields: Any) -> Queue:
    """Set fields of the default queue; recreate it where a test before emptied the tables."""
    return Queue.objects.update_or_create(name="default", defaults=fields)[0]


def make_spec(**fields: Any) -> dict[str, Any]:
    """Return the smallest valid spec of a plain job, as `JobSpec.to_dict` gives it."""
    return JobSpec.parse({"name": "hello", "run": "echo hello", **fields}).to_dict()


def make_job(project: Project | None = None, **fields: Any) -> Job:
    """Create a job in any status (default: QUEUED), without attempts."""
    project = project or make_project()
    status = fields.setdefault("status", JobStatus.QUEUED)
    if status in FINAL_STATUSES:
        fields.setdefault("ended_at", timezone.now())
    if "submitted_by" not in fields:
        fields["submitted_by"] = make_member(project)
    if "spec" not in fields:
        fields["spec"] = make_spec(num_nodes=fields.get("num_nodes", 1))
    defaults = {"name": "hello", "kind": JobKind.PLAIN, **request_fields(**fields)}
    return Job.objects.create(project=project, **{**defaults, **fields})


def request_fields(
    spec: dict[str, Any], backend_name: str = "fake", num_nodes: int | None = None, **_: Any
) -> dict[str, Any]:
    """Return the columns that hold the request of a job with `spec`, on `num_nodes` if given."""
    content = {"name": "hello", "run": "", "num_nodes": 1, **spec}
    parsed = JobSpec.from_dict({**content, "num_nodes": num_nodes or content["num_nodes"]})
    request = JobRequest.of(parsed, backend_name)
    return {**request.columns(), "request_options": request.options()}


def make_schedule(project: Project | None = None, name: str = "nightly", **fields: Any) -> Schedule:
    """Create a member's schedule at three o'clock UTC, with its next time far in the future."""
    project = project or make_project()
    if "owner" not in fields:
        fields["owner"] = make_member(project)
    defaults = {"spec": make_spec(), "spec_source": "run: echo hello\n", "cron": "0 3 * * *"}
    if not fields.get("paused"):
        defaults["next_at"] = timezone.now() + timedelta(days=365)
    return Schedule.objects.create(project=project, name=name, **{**defaults, **fields})


TEMPLATE = """\
name: grid
title: Hello on several nodes
about: Says hello on every node.
parameters:
  nodes: {type: integer, title: Nodes, about: Machines., minimum: 1, maximum: 8, default: 2}
  word: {title: Word, default: hello}
---
# A comment of the template.
name: grid
num_nodes: ${{ nodes }}
run: |
  echo ${{ word }} from node $SKYPILOT_NODE_RANK
"""


def make_template(project: Project | None, name: str = "grid", **fields: Any) -> TemplateVersion:
    """Create a template with parameters `nodes` and `word`; without a project, for all."""
    fields.setdefault("source", TEMPLATE.replace("grid", name) + "# An older text.\n")
    return TemplateVersion.objects.create(project=project, name=name, **fields)


def make_array(project: Project, **fields: Any) -> JobArray:
    """Create an array of one queued job that another user submitted."""
    user = make_member(project)
    array = JobArray.objects.create(
        project=project, name="sweep", size=1, submitted_by=user, **fields
    )
    make_job(project, array=array, array_index=0, submitted_by=user)
    return array


def make_attempt(job: Job | None = None, **fields: Any) -> Attempt:
    """Create an attempt with its own cluster, as `start_attempt` does, for a job in any status."""
    job = job or make_job(status=JobStatus.RUNNING)
    number = fields.pop("number", job.attempts.count() + 1)
    if "cluster" not in fields:
        fields["cluster"] = Cluster.objects.create(
            project=job.project,
            name=f"mptest-{job.pk}-{number}",
            backend_name=job.backend_name,
            num_nodes=job.num_nodes,
            started_by=job.submitted_by,
            queue_name=job.queue_name,
            gpu_type=job.gpu_type,
            gpu_count=job.gpu_count,
        )
    attempt = Attempt.objects.create(
        job=job,
        number=number,
        token_digest=attempt_token_digest(job.pk, number),
        **fields,
    )
    LogHead.objects.create(attempt=attempt)
    return attempt
