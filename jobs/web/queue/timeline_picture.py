"""The picture of the queue's timeline: a row for each job, and where its bar is. Pure.

Positions are percentages of the width, so that the picture fits any screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.urls import reverse
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from jobs.statuses import JobStatus
from jobs.web.base import figures
from monarch_client.wire.timeline import Timeline, TimelineJob, TimelineLane

ROW_HEIGHT, BAR_HEIGHT, AXIS_HEIGHT = 24, 20, 22
# Rows of a lane beside those of waiting jobs: what does not fit is counted.
MOST_ROWS = 60
_LEAST_WIDTH = 0.35  # of a bar, so that the shortest job can be seen and clicked
_TICKS = ((2, 10 * 60), (12, 3600), (48, 4 * 3600), (24 * 14, 24 * 3600))
_BASIS = {
    "bounds": "at the latest",
    "past_runs": "probably",
    "next": "with the next scheduling pass",
}


@dataclass(frozen=True, slots=True)
class Tick:
    """A moment at the axis."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane with its bars as SVG, and what is there and next as text."""

    lane: TimelineLane
    height: int
    bars: SafeString
    rows: SafeString
    left_out: int


@dataclass(slots=True)
class _Bar:
    """A job in its row, from `begin` to `end` in percent."""

    job: TimelineJob
    begin: float
    end: float
    row: int = 0


class Scale:
    """Positions of moments between the begin and the end of a timeline, in percent."""

    def __init__(self, begin: datetime, end: datetime, now: datetime) -> None:
        self._begin, self._span_s, self.now = begin, (end - begin).total_seconds(), now

    def at(self, moment: datetime | None) -> float:
        """Return the position of a moment within the picture; the right end for None."""
        if moment is None:
            return 100.0
        part = (moment - self._begin).total_seconds() / self._span_s
        return round(100.0 * min(1.0, max(0.0, part)), 2)

    def ticks(self) -> list[Tick]:
        """Return the marks of the axis, counted from the present."""
        hours = self._span_s / 3600
        step_s = next(step for most, step in _TICKS if hours <= most)
        half = int(self._span_s / 2 // step_s)
        found = []
        for number in range(-half, half + 1):
            moment = self.now + timedelta(seconds=number * step_s)
            label = figures.span(abs(number) * step_s)
            sign = "−" if number < 0 else "+"
            found.append(Tick(self.at(moment), f"{sign}{label}" if number else "now"))
        return found


def lanes_of(timeline: Timeline) -> list[Lane]:
    """Return the lanes; only jobs that the reader may see have links."""
    scale = Scale(timeline.begin, timeline.end, timeline.now)
    return [_lane(lane, scale) for lane in timeline.lanes]


def _lane(lane: TimelineLane, scale: Scale) -> Lane:
    bars, left_out = _packed(lane.jobs, scale)
    rows = 1 + max((bar.row for bar in bars), default=0)
    projects = {each.project for each in lane.jobs if each.project}
    addresses = {slug: reverse("web:job", args=[slug, 0]).removesuffix("0") for slug in projects}
    current = [each for each in lane.jobs if each.kind != "ended"]
    return Lane(
        lane=lane,
        height=rows * ROW_HEIGHT,
        bars=mark_safe("\n".join(_svg(bar, scale, addresses) for bar in bars)),  # noqa: S308 - escaped
        rows=format_html_join("\n", "{}", ((_item(job, scale.now),) for job in current)),
        left_out=left_out + lane.left_out,
    )


@dataclass(slots=True)
class _Row:
    """A row of bars that do not overlap: what ends before `limit` may follow after `end`."""

    end: float = 0.0
    limit: float = 100.0


def _packed(jobs: Iterable[TimelineJob], scale: Scale) -> tuple[list[_Bar], int]:
    """Return each job in the first row that has space for it, and how many have none.

    Running jobs come first, so that what has ended is left out before them. Waiting jobs have
    rows of their own below the others: their bars are only expected.
    """
    by_kind: dict[str, list[_Bar]] = {"running": [], "ended": [], "waiting": []}
    for job in jobs:
        begin = scale.at(scale.now if job.kind == "waiting" else job.begin)
        end = max(scale.at(job.end), min(100.0, begin + _LEAST_WIDTH))
        by_kind[job.kind].append(_Bar(job, begin, end))
    running, ended, waiting = by_kind.values()
    rows = [_Row(limit=bar.begin) for bar in running[:MOST_ROWS]]
    for number, bar in enumerate(running[:MOST_ROWS]):
        bar.row = number
    placed = [*running[:MOST_ROWS], *(bar for bar in ended if _place(bar, rows))]
    first = len(rows)
    for number, bar in enumerate(waiting):
        bar.row = first + number
    placed += waiting
    return placed, sum(map(len, by_kind.values())) - len(placed)


def _place(bar: _Bar, rows: list[_Row]) -> bool:
    """Set the row of a bar. False: there is no space."""
    for number, row in enumerate(rows):
        if row.end <= bar.begin and bar.end <= row.limit:
            row.end, bar.row = bar.end, number
            return True
    if len(rows) == MOST_ROWS:
        return False
    bar.row = len(rows)
    rows.append(_Row(end=bar.end))
    return True


def words_of(job: TimelineJob, now: datetime) -> str:
    """Return what the bar shows: "Running on 2 x H100:8, ends in 3 h at the latest"."""
    status = JobStatus(job.status).label if job.kind != "ended" or _has_ended(job) else "Ended"
    machines = f"{job.machines} node{'' if job.machines == '1' else 's'}"
    where = job.machines if job.gpu_count else machines
    if job.kind == "waiting":
        return f"{status}, requests {where}, {_start_words(job, now)}"
    if job.kind == "ended":
        begin, end = job.begin or now, job.end or now
        return f"{status}, had {where} for {_span(end - begin)}, {_span(now - end)} ago"
    if job.end is None:
        return f"{status} on {where}, its end is unknown"
    basis = _BASIS.get(job.end_basis, "")
    return f"{status} on {where}, ends {_when(job.end, now)} {basis}".rstrip()


def _start_words(job: TimelineJob, now: datetime) -> str:
    if job.begin is None:
        return "its start is unknown"
    if job.begin_basis == "next":
        return "starts with the next scheduling pass"
    reserved = ", reserved" if job.begin_basis == "bounds" else ""
    return f"starts {_when(job.begin, now)} {_BASIS.get(job.begin_basis, '')}{reserved}"


def _when(moment: datetime, now: datetime) -> str:
    return "any moment" if moment <= now else f"in {_span(moment - now)}"


def _span(length: timedelta) -> str:
    return figures.span(max(0.0, length.total_seconds()))


def _item(job: TimelineJob, now: datetime) -> SafeString:
    words = words_of(job, now)
    if job.job_id is None:
        return format_html("<li>{}: {}</li>", title_of(job), words)
    address = reverse("web:job", args=[job.project, job.job_id])
    return format_html('<li><a href="{}">{}</a>: {}</li>', address, title_of(job), words)


def title_of(job: TimelineJob) -> str:
    """Return name, number and attempt of the job, as far as the reader may see them."""
    if job.job_id is None:
        return "A job of another project"
    attempt = f" attempt {job.attempt}" if (job.attempt or 0) > 1 else ""
    return f"{job.name} #{job.job_id}{attempt}"


def _svg(bar: _Bar, scale: Scale, addresses: Mapping[str, str]) -> str:
    """Draw a bar: solid where it was, dashed where it is expected. The text is escaped.

    There may be a thousand: `format_html` would take most of the time of the page.
    """
    job, y = bar.job, bar.row * ROW_HEIGHT + 2
    words = escape(f"{title_of(job)}: {words_of(job, scale.now)}")
    machines = f" · {job.machines}" if job.gpu_count or job.num_nodes > 1 else ""
    label = title_of(job) + machines if job.job_id is not None else job.machines
    drawn = "".join(
        f'<rect class="{name}" x="{low}%" y="{y}" width="{high - low:.2f}%" height="{BAR_HEIGHT}"/>'
        for name, low, high in _parts(bar, scale)
        if high > low
    )
    inside = (
        f"<title>{words}</title>{drawn}"
        f'<svg x="{bar.begin}%" y="{y}" width="{bar.end - bar.begin:.2f}%" height="{BAR_HEIGHT}">'
        f'<text x="5" y="14">{escape(label)}</text></svg>'
    )
    if job.job_id is None:
        return f'<g class="bar-of other">{inside}</g>'
    address = f"{addresses[job.project]}{job.job_id}"
    key = f"bar-{job.job_id}-{job.attempt or 'next'}"
    return f'<a class="bar-of" id="{key}" href="{address}" aria-label="{words}">{inside}</a>'


def _parts(bar: _Bar, scale: Scale) -> list[tuple[str, float, float]]:
    """Return the parts of a bar: class, begin and end."""
    job, now = bar.job, scale.at(scale.now)
    if job.kind == "ended":
        return [(f"been {_color(job)}", bar.begin, bar.end)]
    state = " unknown" if job.end is None else ""
    if job.kind == "running":
        return [(f"been {_color(job)}", bar.begin, now), (f"soon{state}", now, bar.end)]
    state += " reserved" if job.begin_basis == "bounds" else ""
    start = scale.at(job.begin)
    return [("waits", bar.begin, start), (f"soon{state}", start, bar.end)]


def _color(job: TimelineJob) -> str:
    """Return the class of the bar's color; an attempt whose job goes on is gray."""
    return f"s-{job.status.lower()}" if job.kind == "running" or _has_ended(job) else "s-exited"


def _has_ended(job: TimelineJob) -> bool:
    return JobStatus(job.status).is_final
