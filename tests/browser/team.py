"""A team's jobs as a portal has them on a busy day: always the same, so that pictures are, too."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.actions.jobs.history import note_action, record_note
from jobs.attempt_tokens import attempt_token
from jobs.models import (
    ApiToken,
    Attempt,
    AttemptStage,
    Job,
    JobEvent,
    Project,
    User,
    Worker,
)
from jobs.permissions import Actor
from jobs.statuses import (
    EVIDENCE,
    JobKind,
    JobStatus,
    Role,
    StageName,
    WorkerStatus,
)
from tests.factories import make_attempt, make_job, make_member
from tests.frame_bytes import body, frame

TRAINING = """\
# Policy optimisation: three hosts train, one generates.
name: ppo-cartpole
num_nodes: 4
workdir: .

setup: pip install -r requirements.txt
run: python train.py --steps 200

portal:
  meshes: {trainers: 3, generators: 1}
"""
TRACEBACK = """\
Traceback (most recent call last):
  File "train.py", line 48, in <module>
    losses = trainers.step.call(batch).get()
  File "train.py", line 21, in step
    loss.backward()
ValueError: reward of batch 17 is nan"""
RUNNING, FAILED, SUCCEEDED, CANCELLED, HELD = 128, 126, 125, 124, 130

# Number, name, status, nodes, by, minutes since it was submitted and began, minutes it took.
JOBS: list[tuple[int, str, str, int, str, float, float | None]] = [
    (131, "sweep-lr-3e-5-clip-0.2-entropy-0.01", "QUEUED", 8, "mia", 1, None),
    (HELD, "nightly-eval", "QUEUED", 2, "ada", 4, None),
    (129, "grpo-math-7b", "PROVISIONING", 4, "moe", 0.2, None),
    (RUNNING, "ppo-cartpole", "RUNNING", 4, "ada", 12, None),
    (127, "tokenize-corpus", "SETTING_UP", 1, "moe", 2, None),
    (FAILED, "ppo-cartpole", "FAILED", 4, "ada", 31, 6.4),
    (SUCCEEDED, "hello-mesh", "SUCCEEDED", 2, "mia", 55, 0.7),
    (CANCELLED, "sft-baseline", "CANCELLED", 2, "mia", 80, 22),
    (123, "dpo-ablation", "STOPPING", 2, "moe", 95, None),
    (122, "long-horizon", "RECOVERING", 6, "mia", 190, None),
    (121, "replay-buffer-check", "SUCCEEDED", 1, "ada", 260, 3.1),
    (120, "world-model-pretraining", "SUCCEEDED", 16, "moe", 1700, 412),
]
SAID = {
    131: {"wait_reason": "CAPACITY", "message": "Needs 8 nodes at once; 5 of 16 are free."},
    HELD: {
        "held": True,
        "wait_reason": "HELD",
        "message": "Held by ada.",
        "hint": "It does not start before it is released, by its button or `mportal release`.",
    },
    FAILED: {
        "stop_reason": "USER_CODE",
        "message": "The driver on rank 0 (127.64.1.10) returned exit code 1.",
        "hint": "Read the traceback: the error is in `train.py`; correct it and run again.",
        "exit_code": 1,
    },
    SUCCEEDED: {"stop_reason": "COMPLETED", "message": "The program finished.", "exit_code": 0},
    CANCELLED: {"stop_reason": "CANCELLED_BY_USER", "message": "Cancelled by mia."},
    122: {"message": "A worker was lost: rank 4 no longer answers."},
    123: {"stop_reason": "CANCELLED_BY_USER", "message": "Cancelled by moe."},
}
LOG = (
    (0, "portal", "All {ranks} workers listen; the driver starts."),
    (0, "stdout", "meshes: trainers 3 x 2 processes, generators 1 x 2 processes"),
    (1, "stdout", "loaded 4096 episodes from the replay buffer"),
    (2, "stdout", "loaded 4096 episodes from the replay buffer"),
    (3, "stderr", "UserWarning: no accelerator found, generating on the CPU"),
)


def make_team(project: Project) -> dict[str, User]:
    """Create the team's people; ada has an account already."""
    roles = {"max": Role.MAINTAINER, "mia": Role.MEMBER, "moe": Role.MEMBER, "vera": Role.VIEWER}
    return {name: make_member(project, role, username=name) for name, role in roles.items()}


def number_others_from(first: int) -> None:
    """Give later jobs without a number at least this one, which no picture shows."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT setval('jobs_job_id_seq', greatest(last_value, %s)) FROM jobs_job_id_seq",
            [first],
        )


def make_busy_day(project: Project, ada: User) -> None:
    """Create jobs in every status, with all that their pages show."""
    people = {"ada": ada, **make_team(project)}
    number_others_from(1000)
    for number, name, status, nodes, by, ago_min, took_min in reversed(JOBS):
        began = timezone.now() - timedelta(minutes=ago_min)
        times: dict[str, Any] = {"created_at": began}
        if status != "QUEUED":
            times["started_at"] = began
        if took_min is not None:
            times["ended_at"] = began + timedelta(minutes=took_min)
        job = make_job(
            project,
            pk=number,
            name=name,
            status=JobStatus(status),
            kind=JobKind.PLAIN if nodes < 3 and name != "hello-mesh" else JobKind.MONARCH,
            num_nodes=nodes,
            submitted_by=people[by],
            spec_source=TRAINING.replace("ppo-cartpole", name),
            backend_name="local",
            **times,
            **SAID.get(number, {}),
        )
        _history(job, people[by], status)
        if status != "QUEUED":
            _attempt(job)
    _logs(RUNNING, 60)
    _logs(FAILED, 17)
    _logs(SUCCEEDED, 3)
    _logs(CANCELLED, 8)
    record_note(Job.objects.get(pk=FAILED), TRACEBACK, _attempt_of(FAILED), verb=EVIDENCE)
    for place, event in enumerate(JobEvent.objects.filter(job_id=FAILED).order_by("pk")):
        at = event.job.created_at + timedelta(seconds=(0, 1, 2, 26, 383, 383)[place])
        JobEvent.objects.filter(pk=event.pk).update(at=at)


def make_tokens(ada: User) -> None:
    """Create two tokens; their secrets belong to no user."""
    for name, days in (("laptop", 2), ("ci", 40)):
        token = ApiToken.objects.create(user=ada, name=name, digest=name.rjust(64, "0"))
        made = timezone.now() - timedelta(days=days)
        ApiToken.objects.filter(pk=token.pk).update(created_at=made, last_used_at=made)


def _history(job: Job, by: User, status: str) -> None:
    note_action(job, Actor(by, source="192.0.2.17"), "submit", "Submitted")
    way = {
        "QUEUED": [],
        "PROVISIONING": ["PROVISIONING"],
        "SETTING_UP": ["PROVISIONING", "SETTING_UP"],
    }
    for step in way.get(status, ["PROVISIONING", "SETTING_UP", "RUNNING"]):
        JobEvent.objects.create(job=job, kind="status", new_status=step)
    if JobStatus(status).is_final:
        message = job.message
        JobEvent.objects.create(job=job, kind="status", new_status=status, message=message)


def _attempt(job: Job) -> None:
    began = job.started_at
    assert began is not None
    attempt = make_attempt(job, ended_at=job.ended_at, stop_reason=job.stop_reason)
    reached = {"PROVISIONING": 0, "SETTING_UP": 1, "STOPPING": 3, "RECOVERING": 3, "RUNNING": 3}
    last = reached.get(job.status, 4)
    moment = began
    for place, (name, seconds) in enumerate(zip(StageName, (0.9, 21, 3.2, 0, 0.4), strict=True)):
        if place > last:
            break
        over = place < last or job.ended_at is not None
        ended = moment + timedelta(seconds=seconds) if over else None
        if name == StageName.RUN and over and job.ended_at:
            ended = job.ended_at
        failure = "exit code 1" if name == StageName.RUN and job.status == "FAILED" else ""
        AttemptStage.objects.create(
            attempt=attempt, name=name, started_at=moment, ended_at=ended, failure=failure
        )
        moment = ended or moment
    _workers(job, attempt)


def _workers(job: Job, attempt: Attempt) -> None:
    over = job.ended_at is not None
    for rank in range(job.num_nodes):
        Worker.objects.create(
            attempt=attempt,
            rank=rank,
            mesh="generators" if rank == job.num_nodes - 1 and job.num_nodes > 3 else "trainers",
            status=WorkerStatus.EXITED if over else WorkerStatus.RUNNING,
            address=f"127.64.1.{10 + rank}:22222",
            python="3.11",
            pid=4200 + rank,
            exit_code=0 if over else None,
        )


def _attempt_of(number: int) -> Attempt:
    return Job.objects.get(pk=number).attempts.get()


def _logs(number: int, steps: int) -> None:
    """Write a training run's lines: the output of Monarch programs on four ranks."""
    attempt = _attempt_of(number)
    ranks = attempt.job.num_nodes
    sent = dict.fromkeys(range(ranks), 0)
    frames = []

    def write(rank: int, stream: str, text: str) -> None:
        rank %= ranks
        sent[rank] += 1
        frames.append(frame(sent[rank], "line", rank=rank, stream=stream, text=text))

    for rank, stream, text in LOG:
        write(rank, stream, text.format(ranks=ranks))
    for step in range(1, steps + 1):
        loss = 2.31 * 0.96**step
        write(step, "stdout", f"step {step:3d}  loss {loss:.4f}  reward {9.5 + step * 1.7:6.1f}")
    if number == FAILED:
        for line in TRACEBACK.splitlines():
            write(0, "stderr", line)
    ingest_frames(attempt.pk, attempt_token(attempt.job_id, attempt.number), body(*frames))
