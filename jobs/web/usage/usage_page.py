"""A project's usage by day and by person, beside its monthly budget."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from jobs.ground import clock
from jobs.models import Project
from jobs.permissions import Actor, project_for
from jobs.readers.budget import budget_view
from jobs.readers.usage import MOST_ROWS, usages
from jobs.statuses import UsageBy
from jobs.web.base import figures
from jobs.web.base.access import signed_in
from jobs.web.base.frame import render_page
from jobs.web.base.template_tags import usd
from monarch_client.wire.money import Usage, UsageRow

# Of the dearest; REST and the command line have them all.
MOST_SHOWN = 15
# Each day's place in the drawing, and how high it is.
DAY_WIDTH, HEIGHT = 10, 60


@dataclass(frozen=True, slots=True)
class Bar:
    """One day's in the drawing, and its words."""

    x: float
    y: float
    height: float
    label: str
    words: str


@dataclass(frozen=True, slots=True)
class Part:
    """A row with what it is of all, in per cent of money or, where nothing costs any, of hours."""

    row: UsageRow
    percent: float
    job: int | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """The rows that are shown of one table, and how many there are."""

    shown: list[Part]
    number: str
    are_left_out: bool


@dataclass(frozen=True, slots=True)
class Axis:
    """The unit of a chart's bars, and the labels of its height."""

    unit: str
    top: float
    labels: list[str]  # from the top down


@require_safe
@signed_in
def page(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Show the page of one month."""
    project = project_for(actor, slug)
    context = _context(request, actor, project)
    return render_page(request, actor, "projects/usage.html", context, project=project)


def _context(request: HttpRequest, actor: Actor, project: Project) -> dict[str, Any]:
    today = clock.now().date()
    this_month = today.replace(day=1)
    first = min(_month_of(request.GET.get("month", "")) or this_month, this_month)
    following = (first + timedelta(days=31)).replace(day=1)
    last = following - timedelta(days=1)
    days, people, jobs = usages(
        actor, project, first, last, [UsageBy.DAY, UsageBy.USER, UsageBy.JOB]
    )
    budget = budget_view(actor, project)
    axis = _axis(days)
    return {
        "project": project,
        "nav": "usage",
        "first": first,
        "of_days": "" if first == this_month else f" --from {first} --to {last}",
        "before": (first - timedelta(days=1)).replace(day=1) if first.year > 1 else None,
        "after": following if first < this_month else None,
        "is_now": first == this_month,
        "budget": budget,
        "budget_percent": min(100, budget.percent or 0),
        "usage": days,
        "bars": _bars(days, axis.top),
        "axis": axis,
        "width": len(days.rows) * DAY_WIDTH,
        "height": HEIGHT,
        "middle": HEIGHT // 2,
        "dearest_day": max(days.rows, key=lambda row: (row.usd, row.node_hours)),
        "people": _parts(people),
        "jobs": _parts(jobs),
    }


def _month_of(text: str) -> date | None:
    try:
        return date.fromisoformat(f"{text}-01")
    except ValueError:
        return None


def _axis(days: Usage) -> Axis:
    """Return the axis in US$ or, where nothing costs any, in hours; its top is a round number."""
    top = figures.round_above(max(_weights(days), default=0.0) or 1)
    sign = "$" if days.usd else ""
    labels = [f"{sign}{figures.plain(value)}" for value in (top, top / 2, 0)]
    return Axis("US$ per day" if days.usd else "Node hours per day", top, labels)


def _bars(days: Usage, top: float) -> list[Bar]:
    found = []
    for number, (row, weight) in enumerate(zip(days.rows, _weights(days), strict=True)):
        height = round(HEIGHT * weight / top, 2)
        words = f"{row.key}: {usd(row.usd)}, {figures.hours(row.node_hours)} node hours"
        label = str(int(row.key[-2:]))
        found.append(Bar(number * DAY_WIDTH, HEIGHT - height, height, label, words))
    return found


def _parts(found: Usage) -> Parts:
    total = sum(_weights(found)) or 1.0
    pairs = list(zip(found.rows, _weights(found), strict=True))[:MOST_SHOWN]
    by_job = found.by == UsageBy.JOB
    shown = [
        Part(row, 100 * weight / total, int(row.key) if by_job and row.key.isdecimal() else None)
        for row, weight in pairs
    ]
    count = len(found.rows)
    # Beyond those rows there is one that sums up all others.
    number = str(count) if count <= MOST_ROWS else f"more than {MOST_ROWS}"
    return Parts(shown, number, are_left_out=count > len(shown))


def _weights(found: Usage) -> list[float]:
    """Return the values to compare rows by: US$, or hours where nothing has a price."""
    return [float(row.usd) if found.usd else row.node_hours for row in found.rows]
