"""The picture of the queue's timeline: a row for each job, and where its bar is. Pure.

Positions are percentages of the width, so that the picture fits any screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

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
# The bar of a job without a known end fades out over as much; shorter bars have labels beside them.
_OPEN_WIDTH = 14.0
# Of a label: a letter, and the space around it, in a picture of its least width.
_LETTER_WIDTH, _LABEL_PADDING = 0.75, 1.5
_MINUTE, _HOUR, _DAY = (60, "min"), (3600, "h"), (86_400, "d")
# Up to so many hours: the unit of the axis, and how many of it are between two marks.
_TICKS = ((2, _MINUTE, 10), (12, _HOUR, 1), (48, _HOUR, 4), (24 * 14, _DAY, 1))
# The look of each part of a bar as the legend names it, in its order.
_LOOKS = {
    "been s-running": "Starting or running",
    "open s-running": "No known end",
    "open s-recovering": "No known end",
    "been s-recovering": "Recovering or stopping",
    "been s-succeeded": "Succeeded",
    "been s-failed": "Failed",
    "been s-cancelled": "Cancelled",
    "been s-exited": "Ended attempt of a job that goes on",
    "waits": "Waiting",
    "soon": "Expected",
    "soon unknown": "Expected, no known end",
    "soon reserved": "Reserved",
    "soon unknown reserved": "Reserved, no known end",
}
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
    looks: frozenset[str]


@dataclass(frozen=True, slots=True)
class Look:
    """A look of bars that the picture has, and its meaning."""

    name: str
    meaning: str


@dataclass(slots=True)
class _Bar:
    """A job in its row, from `begin` to `end` in percent.

    Its label ends before `limit`, and is beside the bar of a short job that has ended. Nothing of
    a label is cut: where there is no space for the machines, or the name, they are left out.
    """

    job: TimelineJob
    begin: float
    end: float
    row: int = 0
    limit: float = 100.0

    @property
    def label_at(self) -> float:
        """The position of the label."""
        is_beside = self.job.kind == "ended" and self.end - self.begin < _OPEN_WIDTH
        return self.end if is_beside else self.begin

    @property
    def labels(self) -> list[str]:
        """The possible labels, the longest first."""
        job = self.job
        if job.job_id is None:
            return [job.machines]
        machines = (
            [f"{title_of(job)} · {job.machines}"] if job.gpu_count or job.num_nodes > 1 else []
        )
        return [*machines, title_of(job), f"#{job.job_id}"]

    @property
    def label(self) -> str:
        """The longest label for which there is space; "" if there is none."""
        space = self.limit - self.label_at
        return next((each for each in self.labels if _width_of(each) <= space), "")


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a bar. `moves`: what of it is at the present: its "begin", its "end", "both"."""

    look: str
    begin: float
    end: float
    moves: str = ""


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
        """Return the marks of the axis in one unit, counted from the present."""
        hours = self._span_s / 3600
        (unit_s, word), step = next((unit, step) for most, unit, step in _TICKS if hours <= most)
        half = int(self._span_s / 2 // (unit_s * step))
        found = []
        for number in range(-half, half + 1):
            moment = self.now + timedelta(seconds=number * step * unit_s)
            sign = "−" if number < 0 else "+"
            label = f"{sign}{abs(number) * step} {word}" if number else "now"
            found.append(Tick(self.at(moment), label))
        return found


def lanes_of(timeline: Timeline) -> list[Lane]:
    """Return the lanes; only jobs that the reader may see have links."""
    scale = Scale(timeline.begin, timeline.end, timeline.now)
    return [_lane(lane, scale) for lane in timeline.lanes]


def legend_of(lanes: Iterable[Lane]) -> list[Look]:
    """Return the looks that bars of the lanes have; each meaning once."""
    used = frozenset[str]().union(*(lane.looks for lane in lanes))
    meanings = {meaning: name for name, meaning in reversed(_LOOKS.items()) if name in used}
    return [Look(name, meaning) for meaning, name in reversed(meanings.items())]


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
        looks=frozenset(part.look for bar in bars for part in _parts(bar, scale)),
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
    jobs = list(jobs)
    has_labels = len(jobs) <= MOST_ROWS
    for job in jobs:
        begin = scale.at(scale.now if job.kind == "waiting" else job.begin)
        end = max(scale.at(job.end), min(100.0, begin + _LEAST_WIDTH))
        by_kind[job.kind].append(_Bar(job, begin, end))
    running, ended, waiting = by_kind.values()
    rows = [_Row(limit=bar.begin) for bar in running[:MOST_ROWS]]
    for number, bar in enumerate(running[:MOST_ROWS]):
        bar.row = number
    placed = [
        *running[:MOST_ROWS],
        *(bar for bar in ended if _place(bar, rows, has_label=has_labels)),
    ]
    _limit_labels(placed)
    first = len(rows)
    for number, bar in enumerate(waiting):
        bar.row = first + number
    placed += waiting
    return placed, sum(map(len, by_kind.values())) - len(placed)


def _width_of(label: str) -> float:
    return len(label) * _LETTER_WIDTH + _LABEL_PADDING


def _place(bar: _Bar, rows: list[_Row], *, has_label: bool) -> bool:
    """Set the row of a bar with space for its whole label. False: there is no space."""
    label = _width_of(bar.labels[0]) if has_label else 0.0
    end = max(bar.end, min(100.0, bar.label_at + label))
    for number, row in enumerate(rows):
        if row.end <= bar.begin and end <= row.limit:
            row.end, bar.row = end, number
            return True
    if len(rows) == MOST_ROWS:
        return False
    bar.row = len(rows)
    rows.append(_Row(end=end))
    return True


def _limit_labels(bars: Iterable[_Bar]) -> None:
    """Let each label end where the next bar of its row begins."""
    ordered = sorted(bars, key=lambda bar: (bar.row, bar.begin))
    for bar, following in pairwise(ordered):
        if bar.row == following.row:
            bar.limit = following.begin


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
    """Draw a bar: solid until now, then dashed to its expected end or fading. Text is escaped.

    There may be a thousand: `format_html` would take most of the time of the page.
    """
    job, y, at = bar.job, bar.row * ROW_HEIGHT + 2, bar.label_at
    words = escape(f"{title_of(job)}: {words_of(job, scale.now)}")
    drawn = "".join(_rect(part, y) for part in _parts(bar, scale))
    inside = (
        f"<title>{words}</title>{drawn}"
        f'<svg x="{at}%" y="{y}" width="{max(0.0, bar.limit - at):.2f}%" height="{BAR_HEIGHT}">'
        f'<text x="5" y="14">{escape(bar.label)}</text></svg>'
    )
    if job.job_id is None:
        return f'<g class="bar-of other">{inside}</g>'
    address = f"{addresses[job.project]}{job.job_id}"
    key = f"bar-{job.job_id}-{job.attempt or 'next'}"
    return f'<a class="bar-of" id="{key}" href="{address}" aria-label="{words}">{inside}</a>'


def _rect(part: _Part, y: int) -> str:
    moves = f' data-moves="{part.moves}"' if part.moves else ""
    return (
        f'<rect class="{part.look}" x="{part.begin}%" y="{y}"'
        f' width="{part.end - part.begin:.2f}%" height="{BAR_HEIGHT}"{moves}/>'
    )


def _parts(bar: _Bar, scale: Scale) -> list[_Part]:
    """Return the parts of a bar that have a width."""
    return [part for part in _all_parts(bar, scale) if part.end > part.begin]


def _all_parts(bar: _Bar, scale: Scale) -> list[_Part]:
    job, now = bar.job, scale.at(scale.now)
    color = _color(job)
    if job.kind == "ended":
        return [_Part(f"been {color}", bar.begin, bar.end)]
    if job.kind == "running":
        after = _Part("soon", now, bar.end, "begin")
        if job.end is None:
            after = _Part(f"open {color}", now, min(100.0, now + _OPEN_WIDTH), "both")
        return [_Part(f"been {color}", bar.begin, now, "end"), after]
    look = "soon unknown" if job.end is None else "soon"
    look += " reserved" if job.begin_basis == "bounds" else ""
    start = scale.at(job.begin)
    return [_Part("waits", bar.begin, start, "begin"), _Part(look, start, bar.end)]


# Statuses whose bars have the color of another one.
_SAME_COLOR = {"PROVISIONING": "RUNNING", "SETTING_UP": "RUNNING", "STOPPING": "RECOVERING"}


def _color(job: TimelineJob) -> str:
    """Return the class of the bar's color; an attempt whose job goes on is gray."""
    if job.kind == "ended" and not _has_ended(job):
        return "s-exited"
    return f"s-{_SAME_COLOR.get(job.status, job.status).lower()}"


def _has_ended(job: TimelineJob) -> bool:
    return JobStatus(job.status).is_final
