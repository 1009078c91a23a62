"""mportal overview: what runs, waits and failed, GPUs, idle machines, and costs."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

import click

from monarch_client.cli.jobs import gpu_use_text
from monarch_client.cli.options import project_option
from monarch_client.cli.output import Output, age, dollars, duration, output_options
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.tables import print_table
from monarch_client.cli.terminal import say

if TYPE_CHECKING:
    from monarch_client.wire.overview import (
        GpusOfType,
        IdleMachines,
        Overview,
        PoolGpus,
        Spending,
        WaitingJob,
    )


@click.command()
@project_option
@click.option("--all", "-a", "is_all", is_flag=True, help="Of all your projects.")
@output_options
@pass_session
def overview(session: Session, *, project: str | None, is_all: bool, output: Output) -> None:
    """Show running, waiting and failed jobs, GPUs, and costs."""
    found = session.client.overview(None if is_all else session.project(project))
    output.one(found, lambda: _show(found), key="project")


def _show(found: Overview) -> None:
    say(f"{found.running} running, {found.waiting} waiting, {found.failed} failed in 24 h")
    say(_spending(found.spending))
    _section("Running", ("JOB", "NAME", "PROJECT", "STATUS", "NODES", "GPU USE"), [
        [str(job.id), job.name, job.project, job.status, job.machines, gpu_use_text(job.gpu_use)]
        for job in found.busy_jobs
    ])  # fmt: skip
    _section("Waiting", ("JOB", "NAME", "PROJECT", "NODES", "STARTS", "WHY"), [
        [str(job.id), job.name, job.project, job.machines, _start(job), job.message]
        for job in found.waiting_jobs
    ])  # fmt: skip
    _section("Failed in 24 h", ("JOBS", "CAUSE", "LAST"), [
        [str(row.jobs), row.cause, f"#{row.last_job} {row.last_name}"]
        for row in found.failures
    ])  # fmt: skip
    _section("GPUs", ("TYPE", "HELD", "USE", "POOLS"), [_gpus(row) for row in found.gpus])
    _section(
        f"Idle machines, {dollars(found.idle_usd_per_hour)} per hour",
        ("CLUSTER", "JOB", "NODES", "IDLE", "ENDS", "COST"),
        [_idle(row) for row in found.idle],
    )
    _section("Next schedules", ("SCHEDULE", "PROJECT", "NEXT"), [
        [row.schedule, row.project, _until(row.at)] for row in found.next_runs
    ])  # fmt: skip
    _section("Projects", ("PROJECT", "RUNNING", "WAITING", "FAILED", "THIS MONTH"), [
        [row.project, str(row.running), str(row.waiting), str(row.failed),
         dollars(row.spending.month_usd)]
        for row in found.projects
    ])  # fmt: skip


def _section(title: str, headers: tuple[str, ...], rows: list[list[str]]) -> None:
    """Print a table of the columns with values under its title; nothing without rows."""
    if not rows:
        return
    say(f"\n{click.style(title, bold=True)}")
    filled = [number for number in range(len(headers)) if any(row[number] for row in rows)]
    print_table([headers[n] for n in filled], [[row[n] for n in filled] for row in rows])


def _spending(row: Spending) -> str:
    budget = "" if row.budget_usd is None else f" of {dollars(row.budget_usd)}"
    return (
        f"{dollars(row.today_usd)} today, {dollars(row.month_usd)} this month, "
        f"{dollars(row.forecast_usd)}{budget} expected; {dollars(row.usd_per_hour)} per hour now"
    )


def _gpus(row: GpusOfType) -> list[str]:
    use = "" if row.use is None else f"{row.use:.0f} %"
    held = f"{row.held}, {row.idle} idle" if row.idle else str(row.held)
    return [row.gpu, held, use, ", ".join(map(_used_of, [*row.pools, *row.fleet]))]


def _used_of(row: PoolGpus) -> str:
    return f"{row.name} {row.used} of {row.total} used"


def _idle(row: IdleMachines) -> list[str]:
    job = "" if row.job is None else f"#{row.job} {row.job_name}"
    what = "GPUs" if row.is_busy else "cluster"
    cost = "" if row.usd_per_hour is None else f"{dollars(row.usd_per_hour)} per hour"
    return [
        row.cluster,
        job,
        row.machines,
        f"{what} {age(row.idle_since)}",
        _until(row.ends_at),
        cost,
    ]


def _start(job: WaitingJob) -> str:
    """Return when a job is expected to start, or to request machines again."""
    if job.expected_at is None and job.next_try_at is not None:
        return f"tries again {_until(job.next_try_at)}"
    return _until(job.expected_at)


def _until(moment: datetime | None) -> str:
    """Return a future moment: `in 20 min`; empty if it is not known."""
    if moment is None:
        return ""
    left = moment - datetime.now(timezone.utc)
    return f"in {duration(left)}" if left.total_seconds() > 0 else "now"
