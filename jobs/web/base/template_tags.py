"""Template tags for durations, statuses and icons. Registered in the settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from django import template
from django.conf import settings
from django.db.models import TextChoices
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from jobs.ground.clock import now
from jobs.readers.gpu_use import LISTED_AFTER
from jobs.readers.named_jobs import NAMED_JOB
from jobs.statuses import (
    CatchUpPolicy,
    GatewayState,
    JobKind,
    JobStatus,
    OnSpent,
    OverlapPolicy,
    ProjectState,
    Role,
    StopReason,
    TemplateScope,
    WaitReason,
    WorkerStatus,
)
from jobs.web.base import figures
from jobs.web.base.browsers import browser_name
from jobs.web.base.element_keys import element_key
from jobs.web.base.script_modules import imported_by
from monarch_client.wire.consequences import Asked, consequence_of
from monarch_client.wire.jobs import Job
from monarch_client.wire.ranks import rank_count, rank_ranges

register = template.Library()
register.filter(browser_name)
register.filter(element_key)

_CODE_SPAN = re.compile("`([^`\n]+)`")
_PLACES = {"skypilot": "SkyPilot", "local": "This machine"}
_CENT, _LEAST_USD = Decimal("0.01"), Decimal("0.0001")
_A_MOMENT, _MINUTE, _HOUR, _DAY = 10, 60, 3600, 86400


@register.simple_tag
def icon(name: str) -> SafeString:
    """Draw an icon of the sprite; decoration only, so hidden from screen readers."""
    return format_html(
        '<svg class="icon" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>',
        static("jobs/icons.svg"),
        name.lower(),
    )


@register.simple_tag
def glyph(name: str) -> SafeString:
    """Draw an icon of the sprite within a picture, 16 units wide, at its origin."""
    address = f"{static('jobs/icons.svg')}#{name.lower()}"
    return format_html('<use href="{}" width="16" height="16"></use>', address)


@register.simple_tag
def consequence(action: str, job: Job) -> str:
    """Return what an action does to the job in its present state."""
    return consequence_of(Asked(action), job)


@register.simple_tag
def module(path: str) -> SafeString:
    """Load a module of JavaScript, and the modules that it imports, all at once."""
    preloads = format_html_join(
        "",
        '<link rel="modulepreload" href="{}">',
        ((static(each),) for each in imported_by(path)),
    )
    return format_html('{}<script src="{}" type="module"></script>', preloads, static(path))


# Above this a bar shows it by its color as well.
_MUCH = 90


@register.simple_tag
def bar(percent: float | None) -> SafeString:
    """Draw a bar from 0 to 100; its number is beside it, so it is hidden from screen readers."""
    return format_html(
        '<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        '<rect{} width="{}" height="8"></rect></svg>',
        mark_safe(' class="much"') if (percent or 0) > _MUCH else "",
        round(percent or 0, 1),
    )


# Of a sparkline; hosts report within seconds, so its points are evenly spaced.
_SPARK_WIDTH, _SPARK_HEIGHT = 60, 16


@register.simple_tag
def sparkline(values: Sequence[float]) -> SafeString:
    """Draw values from 0 to 100 as a small line; the number beside it is what is read out."""
    shown = values if len(values) > 1 else [*values, *values]
    step, per_unit = _SPARK_WIDTH / max(1, len(shown) - 1), (_SPARK_HEIGHT - 2) / 100
    points = " ".join(
        f"{place * step:.1f},{_SPARK_HEIGHT - 1 - per_unit * min(100.0, value):.1f}"
        for place, value in enumerate(shown)
    )
    return format_html(
        '<svg class="spark" viewBox="0 0 {} {}" preserveAspectRatio="none" aria-hidden="true">'
        '<polyline points="{}"></polyline></svg>',
        _SPARK_WIDTH,
        _SPARK_HEIGHT,
        points,
    )


register.filter("percent", figures.percent)
register.filter("short_name", figures.short_name)
register.filter("amount", figures.amount)
register.filter("rate", figures.rate)
register.filter("hours", figures.hours)
register.filter("count", figures.count)
register.filter("mean_time", figures.mean_time)
register.filter("rank_count", rank_count)
register.filter("rank_ranges", rank_ranges)


_ICON_OF_STAGE = {
    "active": "running",
    "done": "succeeded",
    "failed": "failed",
    "stopped": "cancelled",
}


@register.simple_tag
def stage_icon(state: str) -> SafeString:
    """Return the icon of a stage in that state."""
    return icon(_ICON_OF_STAGE.get(state, "pending"))


@register.filter
def is_long_idle(since: datetime | None) -> bool:
    """Whether GPUs are idle for long enough to point it out in a list."""
    return since is not None and now() - since >= LISTED_AFTER


@register.simple_tag
def took(start: datetime | None, end: datetime | None) -> SafeString | str:
    """Format the time from `start` to `end`; it keeps counting while there is no end."""
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
    """Format how long a job runs or ran; a dash for a queued one, even if it ran before."""
    return "–" if job.status == JobStatus.QUEUED else took(job.started_at, job.ended_at)


@register.filter
def place_name(backend: str) -> str:
    """Return the display name of a backend."""
    return _PLACES.get(backend, backend.title())


@register.filter
def lasting(seconds: float | None) -> str:
    """Format a duration: `{{ plan.max_duration_s|lasting }}`; a dash if it is unknown."""
    return "–" if seconds is None else words_for(seconds)


def words_for(seconds: float) -> str:
    """Format a duration: "0.4 s", "12 s", "3 m 05 s", "2 h 07 m", "3 d 4 h"."""
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
    """Format an amount of US dollars: "$1,234.50", "$0.0042", "$0"; a dash if it is unknown."""
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
    "gateway": GatewayState,
    "kind": JobKind,
    "role": Role,
    "template_scope": TemplateScope,
    "project_state": ProjectState,
    "on_spent": OnSpent,
    "overlap": OverlapPolicy,
    "catch_up": CatchUpPolicy,
}


@register.simple_tag
def manage_command(verb: str) -> str:
    """Return the command line of a manage.py command on the portal's machine."""
    return f"{settings.MPORTAL_MANAGE} {verb}"


@register.filter
def code_spans(text: str) -> SafeString:
    """Format a sentence with its backquoted parts as code; terminals show the backquotes."""
    return mark_safe(_CODE_SPAN.sub(r"<code>\1</code>", escape(text)))  # noqa: S308 - escaped


@register.filter
def job_links(html: SafeString, projects: dict[int, str]) -> SafeString:
    """Link each job in an escaped text that has a project in `projects` to its page."""

    def link(found: re.Match[str]) -> str:
        number = int(found[1])
        if number not in projects:
            return found[0]
        address = reverse("web:job", args=[projects[number], number])
        return f'<a href="{address}">{found[0]}</a>'

    return mark_safe(NAMED_JOB.sub(link, html))  # noqa: S308 - escaped before


@register.filter
def diff_kind(line: str) -> str:
    """Return whether a line of a difference is `added` or `removed`; empty if neither."""
    return {"+": "added", "-": "removed"}.get(line[:1], "")


@register.simple_tag
def label_text(labels: Mapping[str, str]) -> str:
    """Return labels as people write them: `team=rl, draft`."""
    # A name that ends like a removal keeps its sign.
    return ", ".join(
        f"{name}={value}" if value or name.endswith("-") else name for name, value in labels.items()
    )


@register.simple_tag
def status_words(status: str, waits_for: str) -> str:
    """Return the label of a status; of a queued job also that it is held."""
    is_held = status == JobStatus.QUEUED and waits_for == WaitReason.HELD
    return f"{words(status, 'status')}, held" if is_held else words(status, "status")


@register.filter
def words(value: str, vocabulary: str) -> str:
    """Return a stored value's label: `{{ row.kind|words:"kind" }}`. Others stay as they are."""
    choices = _WORDS[vocabulary]
    return str(choices(value).label) if value in choices.values else value
