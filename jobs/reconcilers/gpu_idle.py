"""Stop jobs whose GPUs are idle for `portal.idle.minutes`, if `gpu_below` is set."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef

from jobs.background.hints import wake_on_commit
from jobs.ground import clock
from jobs.lifecycle import move
from jobs.limits import gpu_rule_of
from jobs.models import Attempt, HostMetrics, Job
from jobs.policies.gpu_idle import LEAST, GpuHost, GpuRule, idle_for
from jobs.policies.limits import shown_minutes_s
from jobs.policies.series import late_after
from jobs.statuses import JobStatus, StopReason


def may_be_idle() -> Exists:
    """Return a condition on attempts: the GPUs of a host have been idle for a minute or more."""
    since = clock.now() - LEAST
    return Exists(HostMetrics.objects.filter(attempt=OuterRef("pk"), gpus_idle_since__lte=since))


def watch_gpus(job: Job, attempt: Attempt) -> None:
    """Stop a job whose GPUs have all been idle for as long as its specification allows.

    The time before `run` does not count. StaleJobError when the job was moved meanwhile.
    """
    rule = gpu_rule_of(job)
    if rule is None or attempt.run_started_at is None or job.status != JobStatus.RUNNING:
        return
    rows = list(attempt.host_metrics.only("attempt", "at", "gpus_idle_since", "latest"))
    if len(rows) < job.num_hosts:
        return
    idle = idle_for(
        [GpuHost(row.at, row.gpus_idle_since) for row in rows],
        begun_at=attempt.run_started_at,
        now=clock.now(),
        late=late_after(settings.MPORTAL_METRICS_SECONDS),
    )
    if idle is not None and idle >= timedelta(minutes=rule.minutes):
        _stop(job, attempt, _said(rows, rule, idle))


def _said(rows: list[HostMetrics], rule: GpuRule, idle: timedelta) -> str:
    gpus = sum(len(row.latest["gpus"]) for row in rows)
    hosts = "1 host" if len(rows) == 1 else f"{len(rows)} hosts"
    whose = "Its GPU was" if gpus == 1 else f"Its {gpus} GPUs on {hosts} were"
    lasted = shown_minutes_s(idle.total_seconds())
    message = f"{whose} used less than {rule.below} % for {lasted}."
    if rule.limit is not None and rule.limit.value < rule.requested_minutes:
        message += f" {rule.limit.value} min are the limit of {rule.limit.set_by}."
    return message


def _stop(job: Job, attempt: Attempt, message: str) -> None:
    move(
        job,
        JobStatus.STOPPING,
        reason=StopReason.IDLE,
        message=message,
        attempt=attempt,
        hint="The log and the tab Nodes show what the job did. If it needs such pauses, "
        "raise portal.idle.minutes, or leave portal.idle.gpu_below out.",
    )
    wake_on_commit("stopping", job.pk)
