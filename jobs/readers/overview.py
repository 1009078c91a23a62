"""The overview: what a team looks at first, of one project or of all that a user sees.

The numbers are added up in the database; the queries are as many for one job as for many.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from jobs.ground import clock
from jobs.models import Budget, Project, Schedule
from jobs.permissions import Actor, Verb, projects_of, require
from jobs.policies.budgets import Month
from jobs.policies.costs import NOTHING, rounded
from jobs.readers import overview_jobs as jobs
from jobs.readers import overview_machines as machines
from jobs.readers.queue_state import QueueState
from jobs.spending import spent_within
from jobs.statuses import ProjectState
from monarch_client.wire import overview as wire

MOST_RUNS = 4
# What a forecast goes by.
_LATELY = timedelta(days=7)
_DAY = timedelta(days=1)
# What ended before is not counted as new.
MOST_CHANGES = timedelta(days=7)


def overview(
    actor: Actor, project: Project | None = None, since: datetime | None = None
) -> wire.Overview:
    """Return the overview of `project`, or of all active projects that the actor sees.

    `since`: the begin of what is new; a day ago if it is not given.
    """
    if project is not None:
        require(actor, Verb.VIEW_PROJECT, project)
    active = projects_of(actor).in_state(ProjectState.ACTIVE)
    projects = list(active) if project is None else [project]
    queue, now = QueueState(actor), clock.now()
    numbers = jobs.job_numbers(projects)
    idle = machines.idle_machines(projects)
    spending = _spending(projects, now)
    return wire.Overview(
        project=project.slug if project else "",
        running=numbers.running.total(),
        waiting=numbers.waiting.total(),
        failed=numbers.failed.total(),
        busy_jobs=jobs.busy_jobs(projects),
        waiting_jobs=jobs.waiting_jobs(actor, projects, queue.planned),
        waiting_for=numbers.waiting_for,
        failures=jobs.failures(projects),
        gpus=machines.gpus_by_type(projects, queue.pools()),
        idle=idle[: machines.MOST_IDLE],
        idle_usd_per_hour=machines.price_of(idle),
        ending_nodes=machines.ending_nodes(projects),
        spending=_total(spending.values()),
        next_runs=_next_runs(projects),
        changes=jobs.changes(projects, max(since or now - _DAY, now - MOST_CHANGES)),
        projects=[]
        if project
        else [
            wire.ProjectNow(
                project=each.slug,
                running=numbers.running[each.pk],
                waiting=numbers.waiting[each.pk],
                failed=numbers.failed[each.pk],
                spending=spending[each.pk],
            )
            for each in projects
        ],
    )


def _spending(projects: Sequence[Project], now: datetime) -> dict[int, wire.Spending]:
    """Return the costs of each project."""
    numbers, month = [project.pk for project in projects], Month.of(now)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    spans = [
        (midnight, midnight + _DAY),
        (month.begin, month.end),
        (now - _LATELY, now),
    ]
    today, so_far, lately = spent_within(spans, now, numbers)
    budgets = dict(Budget.objects.filter(project__in=numbers).values_list("project", "usd"))
    prices = machines.prices_now(projects)
    left = Decimal((month.end - now) / _LATELY)
    return {
        number: wire.Spending(
            today_usd=rounded(today.get(number, NOTHING)),
            month_usd=rounded(so_far.get(number, NOTHING)),
            forecast_usd=rounded(so_far.get(number, NOTHING) + left * lately.get(number, NOTHING)),
            budget_usd=budgets.get(number),
            usd_per_hour=rounded(prices.get(number, NOTHING)),
        )
        for number in numbers
    }


def _total(rows: Collection[wire.Spending]) -> wire.Spending:
    """Return the sums of projects; the budget only if each of them has one."""
    budgets = [row.budget_usd for row in rows if row.budget_usd is not None]
    has_all = bool(rows) and len(budgets) == len(rows)
    return wire.Spending(
        today_usd=sum((row.today_usd for row in rows), NOTHING),
        month_usd=sum((row.month_usd for row in rows), NOTHING),
        forecast_usd=sum((row.forecast_usd for row in rows), NOTHING),
        budget_usd=sum(budgets, NOTHING) if has_all else None,
        usd_per_hour=sum((row.usd_per_hour for row in rows), NOTHING),
    )


def _next_runs(projects: Sequence[Project]) -> list[wire.NextRun]:
    """Return the next times of schedules that are not paused."""
    due = Schedule.objects.filter(project__in=projects, paused=False, next_at__isnull=False)
    rows = due.select_related("project").only("name", "next_at", "project__slug")
    return [
        wire.NextRun(project=row.project.slug, schedule=row.name, at=row.next_at)
        for row in rows.order_by("next_at", "pk")[:MOST_RUNS]
        if row.next_at is not None
    ]
