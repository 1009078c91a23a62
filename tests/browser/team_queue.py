"""The other content of a team's queue: a month's spending, schedules, a sweep."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from jobs.models import (
    Attempt,
    Budget,
    BudgetNotice,
    Cluster,
    Job,
    JobArray,
    JobDependency,
    Project,
    User,
)
from jobs.statuses import ClusterStatus, JobStatus, OnSpent
from tests.browser.team import FAILED, SAID, SUCCEEDED
from tests.factories import make_attempt, make_job, make_schedule, make_spec

SPENT = (("ppo-cartpole", "ada"), ("grpo-math-7b", "moe"), ("dpo-ablation-with-a-long-name", "mia"))


def make_spending(project: Project) -> None:
    """Create a month whose budget is used up, spent by a few people on many days."""
    now = timezone.now()
    budget = {"usd": 400, "on_spent": OnSpent.HOLD, "warn_at": [50, 80, 100]}
    Budget.objects.create(project=project, **budget)
    for number, (name, by) in enumerate(SPENT * 4):
        end = max(now - timedelta(days=number * 2), now.replace(day=1))
        begin = end - timedelta(hours=3 + number % 5)
        user = User.objects.get(username=by)
        spec = make_spec(resources={"accelerators": f"H100:{8 if number % 3 else 1}"})
        job = make_job(project, name=name, submitted_by=user, status=JobStatus.SUCCEEDED, spec=spec)
        attempt = make_attempt(job)
        Attempt.objects.filter(pk=attempt.pk).update(created_at=begin, ended_at=end)
        Cluster.objects.filter(pk=attempt.cluster_id).update(
            status=ClusterStatus.GONE,
            created_at=begin,
            gone_at=end + timedelta(hours=1),
            billed_at=end + timedelta(hours=2),
            usd=17 + number * 7 % 40,
            is_reusable=True,
        )
    for threshold in (50, 80, 100):
        BudgetNotice.objects.create(
            project=project,
            month=now.date().replace(day=1),
            threshold=threshold,
            usd=threshold * 4 + 1,
            budget_usd=400,
            at=now - timedelta(hours=200 - threshold),
        )


def make_schedules(project: Project, ada: User) -> None:
    """Create schedules: one goes well, one has lost its owner, one was never due."""
    moe = User.objects.get(username="moe")
    today = timezone.now().replace(hour=2, minute=30, second=0, microsecond=0)
    nightly = make_schedule(project, "nightly-eval", owner=ada, cron="30 3 * * 1-5",
                            zone="Europe/Berlin", next_at=today + timedelta(days=1))  # fmt: skip
    runs = ((0, "submitted", SUCCEEDED, ""), (1, "skipped", None, "Job 121 had not ended."),
            (2, "submitted", FAILED, ""))  # fmt: skip
    for days, outcome, job_id, message in runs:
        slot = today - timedelta(days=days)
        nightly.runs.create(slot=slot, outcome=outcome, job_id=job_id, message=message)
    why = (
        "Paused. Its owner moe may not submit jobs in project rl any more. "
        "Who resumes it becomes its owner."
    )
    left = make_schedule(project, "tokenize-corpus", owner=moe, paused=True, message=why)
    left.runs.create(slot=today, outcome="failed", message=why)
    make_schedule(
        project,
        "hourly-checkpoint-upload-to-the-bucket",
        owner=ada,
        cron="@hourly",
        zone="America/New_York",
    )


def make_sweep(project: Project, ada: User) -> JobArray:
    """Create an array of six jobs in several statuses, of which two run at once."""
    rates, seeds = ["1e-4", "3e-4", "1e-3"], ["1", "2"]
    array = JobArray.objects.create(
        project=project,
        name="ppo-sweep",
        size=6,
        values=[["lr", rates], ["seed", seeds]],
        max_parallel=2,
        submitted_by=ada,
    )
    first = Job.objects.get(pk=SUCCEEDED)
    for index, status in enumerate(
        ("SUCCEEDED", "FAILED", "RUNNING", "RUNNING", "QUEUED", "QUEUED")
    ):
        began = None if status == "QUEUED" else timezone.now() - timedelta(minutes=20 - index)
        over = index < 2
        limit = {
            "wait_reason": "PARALLEL",
            "message": f"Array {array.pk} runs at most 2 jobs at once.",
        }
        job = make_job(
            project,
            name=f"ppo-sweep-{index}",
            status=JobStatus(status),
            array=array,
            array_index=index,
            array_values={"lr": rates[index // 2], "seed": seeds[index % 2]},
            submitted_by=ada,
            backend_name="local",
            started_at=began,
            **({"ended_at": began + timedelta(minutes=7)} if over and began else {}),
            **(limit if status == "QUEUED" else {}),
            **(SAID[FAILED] if status == "FAILED" else {}),
        )
        JobDependency.objects.create(
            job=job,
            needs=first,
            needs_number=first.pk,
            needs_name=first.name,
            ended_as=first.status,
            noted=True,
        )
    return array
