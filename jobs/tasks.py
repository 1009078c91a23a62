"""Celery's entry points: each hint or tick runs steps of one reconciler, and nothing else.

With an id a task looks at that row (a hint); without one at all that is due (a beat tick).
"""

from __future__ import annotations

import logging
from types import ModuleType

from celery import shared_task
from celery.signals import worker_ready

from jobs.backends import registry
from jobs.reconcilers import (
    autostop,
    billing,
    budgets,
    children,
    dependencies,
    infra,
    job_budgets,
    log_policies,
    orphans,
    prices,
    provisioning,
    queue,
    recovering,
    retention,
    running,
    schedules,
    sealing,
    stopping,
    teardown,
)

log = logging.getLogger(__name__)


@worker_ready.connect
def warm_up(**_: object) -> None:
    """Get ready before the first job: it would wait for that else."""
    registry.warm_up()


@shared_task(name="jobs.queue")
def run_queue() -> None:
    """One pass over the queue."""
    queue.step()


@shared_task(name="jobs.dependencies")
def run_dependencies(job_id: int | None = None) -> None:
    """One job that waits for others, or all for which one has ended."""
    _run(dependencies, job_id)


@shared_task(name="jobs.children")
def run_children(job_id: int | None = None) -> None:
    """One job whose parent has ended, or all such."""
    _run(children, job_id)


@shared_task(name="jobs.retention")
def run_retention() -> None:
    """One sweep."""
    retention.step()


@shared_task(name="jobs.orphans")
def run_orphans() -> None:
    """One sweep over what the backends hold."""
    orphans.step()


@shared_task(name="jobs.infra")
def run_infra() -> None:
    """One look at clouds and free GPUs, if somebody wants to know."""
    infra.step()


@shared_task(name="jobs.prices")
def run_prices() -> None:
    """One look for prices that a quota counts and nobody knows yet."""
    prices.step()


@shared_task(name="jobs.billing")
def run_billing() -> None:
    """One look for bills."""
    billing.step()


@shared_task(name="jobs.budgets")
def run_budgets(project_id: int | None = None) -> None:
    """One project's budget, or all."""
    _run(budgets, project_id)


@shared_task(name="jobs.job_budgets")
def run_job_budgets(job_id: int | None = None) -> None:
    """One job's budget, or those of all that have one."""
    _run(job_budgets, job_id)


@shared_task(name="jobs.provisioning")
def run_provisioning(job_id: int | None = None) -> None:
    """One job, or all that are due."""
    _run(provisioning, job_id)


@shared_task(name="jobs.running")
def run_running(job_id: int | None = None) -> None:
    """One job, or all that are due."""
    _run(running, job_id)


@shared_task(name="jobs.recovering")
def run_recovering(job_id: int | None = None) -> None:
    """One job, or all that are due."""
    _run(recovering, job_id)


@shared_task(name="jobs.stopping")
def run_stopping(job_id: int | None = None) -> None:
    """One job, or all that are due."""
    _run(stopping, job_id)


@shared_task(name="jobs.teardown")
def run_teardown(cluster_id: int | None = None) -> None:
    """One cluster, or all that are due."""
    _run(teardown, cluster_id)


@shared_task(name="jobs.autostop")
def run_autostop(cluster_id: int | None = None) -> None:
    """One kept cluster, or all that wait for a job."""
    _run(autostop, cluster_id)


@shared_task(name="jobs.log_policies")
def run_log_policies(attempt_id: int | None = None) -> None:
    """One attempt's new lines, or all that nobody has looked at."""
    _run(log_policies, attempt_id)


@shared_task(name="jobs.schedules")
def run_schedules(schedule_id: int | None = None) -> None:
    """One schedule, or all whose time has come."""
    _run(schedules, schedule_id)


@shared_task(name="jobs.sealing")
def run_sealing(attempt_id: int | None = None) -> None:
    """One attempt's log, or all that are due."""
    _run(sealing, attempt_id)


def _run(reconciler: ModuleType, row_id: int | None) -> None:
    for each in reconciler.due() if row_id is None else [row_id]:
        _step(reconciler, each)


def _step(reconciler: ModuleType, row_id: int) -> None:
    """One row's failure must not keep the others from their turn."""
    try:
        reconciler.step(row_id)
    except Exception:
        context = {"action": "step_failed", "row": row_id, "of": reconciler.__name__}
        log.exception("step failed", extra=context)
