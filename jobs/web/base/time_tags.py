"""Template tags for times. Registered in the settings; `clocks` has the formats.

Each tag writes a `<time>` whose attribute names its format: `js/times.js` keeps its text current.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from django import template
from django.conf import settings
from django.template.context import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString

from jobs.ground.clock import now
from jobs.models import User
from jobs.readers.schedules import cron_meaning
from jobs.web.base import figures
from jobs.web.base.clocks import Clock, clock_of, is_zone, words_ago, words_until

register = template.Library()


@register.simple_tag(takes_context=True)
def clock_settings(context: Context) -> SafeString:
    """Write what the user chose as attributes of the page's root, for the script."""
    user = getattr(_request(context), "user", None)
    zone, hours = (user.time_zone, user.hour_format) if isinstance(user, User) else ("", "")
    root = settings.SESSION_COOKIE_PATH
    return format_html('data-zone="{}" data-hours="{}" data-root="{}"', zone, hours, root)


@register.simple_tag(takes_context=True)
def ago(context: Context, moment: datetime | None) -> SafeString | str:
    """Format a moment as "3 min ago"."""
    if moment is None:
        return "–"
    text = words_ago((now() - moment).total_seconds())
    return _time("ago", moment, text, clock_of(_request(context)))


@register.simple_tag(takes_context=True)
def for_span(context: Context, since: datetime) -> SafeString:
    """Format the time since a moment in one unit, as "40 min"."""
    text = figures.span((now() - since).total_seconds())
    return _time("span", since, text, clock_of(_request(context)))


@register.simple_tag(takes_context=True)
def from_now(context: Context, moment: datetime) -> SafeString:
    """Format a future moment as "in 5 min", no more exact than an estimate."""
    text = words_until((moment - now()).total_seconds())
    return _time("in", moment, text, clock_of(_request(context)))


@register.simple_tag(takes_context=True)
def clock(context: Context, moment: datetime) -> SafeString:
    """Format a moment as a time of day, with its day if it is not near."""
    shown = clock_of(_request(context))
    return _time("clock", moment, shown.when(moment), shown)


@register.simple_tag(takes_context=True)
def day(context: Context, moment: datetime | None) -> SafeString | str:
    """Format the day of a moment, as "Nov 27, 2026"."""
    if moment is None:
        return "–"
    shown = clock_of(_request(context))
    return _time("day", moment, shown.day(moment), shown)


@register.simple_tag(takes_context=True)
def slot(context: Context, moment: datetime) -> SafeString:
    """Format a time of a schedule for the reader: "Fri, Nov 27, 14:03"."""
    shown = clock_of(_request(context))
    return _time("slot", moment, shown.slot(moment), shown)


@register.simple_tag(takes_context=True)
def in_zone(context: Context, moment: datetime | None, zone: str) -> SafeString | str:
    """Format a time of a schedule for the reader, and in the schedule's own zone if it differs."""
    if moment is None:
        return "–"
    shown = clock_of(_request(context))
    time = slot(context, moment)
    if zone == shown.zone or not is_zone(zone):
        return time
    own = Clock(zone, shown.has_half_days).slot(moment)
    return format_html('{} <span class="muted">{} {}</span>', time, own, zone)


@register.simple_tag(takes_context=True)
def meaning(context: Context, cron: str) -> str:
    """Describe a valid cron expression with the reader's 12 or 24 hours."""
    return cron_meaning(cron, has_half_days=clock_of(_request(context)).has_half_days)


def _request(context: Context) -> Any:
    return getattr(context, "request", None)


def _time(form: str, moment: datetime, text: str, shown: Clock) -> SafeString:
    # No attribute changes with time: streams send the parts that differ in more than such texts.
    return format_html(
        '<time class="nowrap" datetime="{}" title="{}" data-{}>{}</time>',
        moment.astimezone(timezone.utc).isoformat(),
        shown.title(moment),
        form,
        text,
    )
