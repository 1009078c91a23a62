"""How times, durations, statuses and icons look in a template. Registered in the settings."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

from django import template
from django.conf import settings
from django.db.models import TextChoices
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from jobs.ground.clock import now
from jobs.readers.named_jobs import NAMED_JOB
from jobs.statuses import (
    CatchUpPolicy,
    JobKind,
    JobStatus,
    OnSpent,
    OverlapPolicy,
    ProjectState,
    Role,
    StopReason,
    WaitReason,
    WorkerStatus,
)
from jobs.web.base import figures
from monarch_client.wire.jobs import Job

register = template.Library()

_CODE_SPAN = re.compile("`([^`\n]+)`")
_PLACES = {"skypilot": "SkyPilot", "local": "This machine"}
_CENT, _LEAST_USD = Decimal("0.01"), Decimal("0.0001")
_A_MOMENT, _MINUTE, _HOUR, _DAY = 10, 60, 3600, 86400


@register.simple_tag
def icon(name: str) -> SafeString:
    """A sign from the sprite; decoration only, so hidden from screen readers."""
    return format_html(
        '<svg class="icon" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>',
        static("jobs/icons.svg"),
        name.lower(),
    )


# Above this a bar says so by its colour as well.
_MUCH = 90


@register.simple_tag
def bar(percent: float | None) -> SafeString:
    """A bar from 0 to 100; its number stands beside it, so it is hidden from screen readers."""
    return format_html(
        '<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        '<rect{} width="{}" height="8"></rect></svg>',
        mark_safe(' class="much"') if (percent or 0) > _MUCH else "",
        round(percent or 0, 1),
    )


register.filter("percent", figures.percent)
register.filter("short_name", figures.short_name)
register.filter("amount", figures.amount)
register.filter("rate", figures.rate)
register.filter("hours", figures.hours)


_ICON_OF_STAGE = {
    "active": "running",
    "done": "succeeded",
    "failed": "failed",
    "stopped": "cancelled",
}


@register.simple_tag
def stage_icon(state: str) -> SafeString:
    """The sign of a stage in that state."""
    return icon(_ICON_OF_STAGE.get(state, "pending"))


@register.simple_tag
def ago(moment: datetime | None) -> SafeString | str:
    """A moment as "3 min ago"; the script keeps it fresh and puts local time into the title."""
    if moment is None:
        return "–"
    return format_html(
        '<time datetime="{}" title="{}" data-ago>{}</time>',
        moment.isoformat(),
        moment.strftime("%Y-%m-%d %H:%M:%S UTC"),
        words_ago((now() - moment).total_seconds()),
    )


@register.simple_tag
def from_now(moment: datetime) -> SafeString:
    """A moment that is still to come, as "in 5 min": no more exact than an estimate is."""
    left_s = (moment - now()).total_seconds()
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        moment.isoformat(),
        moment.strftime("%Y-%m-%d %H:%M:%S UTC"),
        "any moment" if left_s < 1 else f"in {figures.span(left_s)}",
    )


@register.simple_tag
def clock(moment: datetime) -> SafeString:
    """A moment as a time of day, in UTC until the script makes it local."""
    return format_html(
        '<time datetime="{}" title="{}" data-clock>{}</time>',
        moment.isoformat(),
        moment.strftime("%Y-%m-%d %H:%M:%S UTC"),
        moment.strftime("%H:%M:%S"),
    )


@register.simple_tag
def in_zone(moment: datetime | None, zone: str) -> SafeString | str:
    """A moment as the clock of another place shows it, with its weekday and which clock it is.

    Where there is no such place (any more), UTC's.
    """
    if moment is None:
        return "–"
    try:
        local = moment.astimezone(ZoneInfo(zone))
    except (KeyError, OSError, ValueError):
        local = moment.astimezone(timezone.utc)
    # Zones without letters of their own are named by their distance: +08.
    clock_name = local.strftime("%Z")
    if not clock_name.isalpha():
        clock_name = f"UTC{clock_name}"
    return format_html(
        '<time class="nowrap" datetime="{}" title="{}">{} <span class="muted">{}</span></time>',
        moment.isoformat(),
        moment.strftime("%Y-%m-%d %H:%M:%S UTC"),
        local.strftime("%a %Y-%m-%d %H:%M"),
        clock_name,
    )


@register.simple_tag
def took(start: datetime | None, end: datetime | None) -> SafeString | str:
    """How long from `start` to `end`; still ticking while there is no end."""
    if start is None:
        return "–"
    seconds = ((end or now()) - start).total_seconds()
    if end is not None:
        return format_html('<span class="num">{}</span>', words_for(seconds))
    return format_html(
        '<time class="num" datetime="{}" data-since>{}</time>',
        start.isoformat(),
        words_for(seconds),
    )


@register.simple_tag
def ran(job: Job) -> SafeString | str:
    """How long a job runs or ran; nothing of one that waits, maybe once more."""
    return "–" if job.status == JobStatus.QUEUED else took(job.started_at, job.ended_at)


@register.filter
def place_name(backend: str) -> str:
    """How people call a backend."""
    return _PLACES.get(backend, backend.title())


@register.filter
def lasting(seconds: float) -> str:
    """How long, in words: `{{ plan.max_duration_s|lasting }}`."""
    return words_for(seconds)


def words_ago(seconds: float) -> str:
    """How long ago: "just now", "5 min ago", "3 h ago", "12 days ago"."""
    if seconds < _A_MOMENT:
        return "just now"
    for size, word in ((_DAY, "day"), (_HOUR, "h"), (_MINUTE, "min"), (1, "s")):
        count = int(seconds // size)
        if count:
            plural = "s" if word == "day" and count > 1 else ""
            return f"{count} {word}{plural} ago"
    return "just now"


def words_for(seconds: float) -> str:
    """How long: "0.4 s", "12 s", "3 m 05 s", "2 h 07 m", "3 d 4 h"."""
    whole = max(0, int(seconds))
    if whole < _A_MOMENT:
        return f"{max(0.0, seconds):.1f} s"
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} m {whole % _MINUTE:02d} s"
    if whole < _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02d} m"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"


@register.filter
def usd(amount: Decimal | None) -> str:
    """An amount for people: "$1,234.50", "$0.0042", "$0"; a dash where nobody knows."""
    if amount is None:
        return "–"
    if not amount:
        return "$0"
    if amount < _LEAST_USD:
        return "under $0.0001"
    return f"${amount:,.2f}" if amount >= _CENT else f"${amount:.4f}"


_WORDS: dict[str, type[TextChoices]] = {
    "status": JobStatus,
    "stop": StopReason,
    "wait": WaitReason,
    "worker": WorkerStatus,
    "kind": JobKind,
    "role": Role,
    "project_state": ProjectState,
    "on_spent": OnSpent,
    "overlap": OverlapPolicy,
    "catch_up": CatchUpPolicy,
}


@register.simple_tag
def manage_command(verb: str) -> str:
    """The line that runs a command of manage.py on the portal's machine."""
    return f"{settings.MPORTAL_MANAGE} {verb}"


@register.filter
def code_spans(text: str) -> SafeString:
    """A sentence with what stands in backquotes set as code, as the terminal's reader sees it."""
    return mark_safe(_CODE_SPAN.sub(r"<code>\1</code>", escape(text)))  # noqa: S308 - escaped


@register.filter
def job_links(html: SafeString, projects: dict[int, str]) -> SafeString:
    """Escaped text in which each job that has a project in `projects` leads to its page."""

    def link(found: re.Match[str]) -> str:
        number = int(found[1])
        if number not in projects:
            return found[0]
        address = reverse("web:job", args=[projects[number], number])
        return f'<a href="{address}">{found[0]}</a>'

    return mark_safe(NAMED_JOB.sub(link, html))  # noqa: S308 - escaped before


@register.simple_tag
def status_words(status: str, waits_for: str) -> str:
    """A status; in the queue also that somebody holds the job there."""
    is_held = status == JobStatus.QUEUED and waits_for == WaitReason.HELD
    return f"{words(status, 'status')}, held" if is_held else words(status, "status")


@register.filter
def words(value: str, vocabulary: str) -> str:
    """The label of a stored value: `{{ row.kind|words:"kind" }}`. Unknown ones stay as they are."""
    choices = _WORDS[vocabulary]
    return str(choices(value).label) if value in choices.values else value
