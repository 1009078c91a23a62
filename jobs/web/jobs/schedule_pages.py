"""The schedules of a project: a list, a page for each, and the form that makes or changes one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from jobs.actions.jobs.submit import expect_job
from jobs.actions.schedules.edit_schedules import (
    ScheduleContent,
    change_schedule,
    create_schedule,
    delete_schedule,
    pause_schedule,
    resume_schedule,
)
from jobs.actions.schedules.run_schedule import run_now
from jobs.errors import BackendError, ConflictError, InvalidSpecError, StorageFullError
from jobs.models import Project, Schedule
from jobs.permissions import Actor, Verb, may, project_for, require, require_schedule
from jobs.readers.schedules import preview, schedule_list, schedule_named, schedule_page, zone_names
from jobs.web.base.access import attempt_action, signed_in
from jobs.web.base.clocks import clock_of
from jobs.web.base.forms import ScheduleForm
from jobs.web.base.frame import render_page
from jobs.web.jobs.code_editor import editor_context
from jobs.web.jobs.submit_page import first_source

_PREFIX = "schedule."


@require_safe
@signed_in
def schedules(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Show the list of schedules."""
    project = project_for(actor, slug)
    context = {
        "project": project,
        "nav": "schedules",
        "schedules": schedule_list(actor, project),
        "may_make": may(actor, Verb.MANAGE_OWN_SCHEDULES, project),
    }
    return render_page(request, actor, "schedules/list.html", context, project=project)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def new(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Show the form for a new schedule; a valid form leads to the schedule's page."""
    project = project_for(actor, slug)
    require(actor, Verb.MANAGE_OWN_SCHEDULES, project)
    expect_job()
    initial = {"source": first_source(request, actor, slug), "zone": clock_of(request).zone}
    form = ScheduleForm(_typed(request), initial=initial, is_new=True)

    def make(content: ScheduleContent) -> Schedule:
        return create_schedule(actor, project, form.cleaned_data["name"], content)

    if request.method == "POST" and (schedule := _sent(form, make)):
        messages.success(request, f"{schedule.name} was created.")
        return redirect("web:schedule", slug=slug, schedule_name=schedule.name)
    return _form_page(request, actor, project, form, {})


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def page(request: HttpRequest, actor: Actor, slug: str, schedule_name: str) -> HttpResponse:
    """Show one schedule; change it with POST."""
    project = project_for(actor, slug)
    schedule = schedule_named(actor, project, schedule_name)
    fields = ("cron", "zone", "overlap", "catch_up")
    initial = {name: getattr(schedule, name) for name in fields}
    form = ScheduleForm(
        _typed(request), initial={**initial, "source": schedule.spec_source}, is_new=False
    )
    if request.method == "POST":
        require_schedule(actor, schedule)
        if _sent(form, lambda content: _change(actor, schedule, content)):
            messages.success(request, f"{schedule_name} was changed.")
            return redirect("web:schedule", slug=slug, schedule_name=schedule_name)
        schedule = schedule_named(actor, project, schedule_name)
    shown = schedule_page(actor, schedule)
    return _form_page(request, actor, project, form, {"schedule": shown})


@require_safe
@signed_in
def times(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Show when a schedule would run; the form requests it as its times are typed."""
    require(actor, Verb.VIEW_PROJECT, project_for(actor, slug))
    cron, zone = request.GET.get("cron", ""), request.GET.get("zone", "")
    found = preview(cron, zone, has_half_days=clock_of(request).has_half_days)
    context = {"preview": found, "zone": zone}
    return render(request, "schedules/_times.html", context)


@require_POST
@signed_in
def pause(request: HttpRequest, actor: Actor, slug: str, schedule_name: str) -> HttpResponse:
    """Pause it and stay on its page."""
    return _do(request, actor, (slug, schedule_name), pause_schedule)


@require_POST
@signed_in
def resume(request: HttpRequest, actor: Actor, slug: str, schedule_name: str) -> HttpResponse:
    """Resume it and stay on its page."""
    return _do(request, actor, (slug, schedule_name), resume_schedule)


@require_POST
@signed_in
def run(request: HttpRequest, actor: Actor, slug: str, schedule_name: str) -> HttpResponse:
    """Run it now, and go to the job."""
    schedule = schedule_named(actor, project_for(actor, slug), schedule_name)
    try:
        job = run_now(actor, schedule)
    except (BackendError, ConflictError, InvalidSpecError, StorageFullError) as error:
        messages.error(request, error.summary)
    else:
        return redirect("web:job", slug=slug, job_id=job.pk)
    return redirect("web:schedule", slug=slug, schedule_name=schedule_name)


@require_POST
@signed_in
def delete(request: HttpRequest, actor: Actor, slug: str, schedule_name: str) -> HttpResponse:
    """Delete it and go to the list."""
    schedule = schedule_named(actor, project_for(actor, slug), schedule_name)
    return attempt_action(
        request,
        lambda: delete_schedule(actor, schedule),
        done=f"{schedule_name} is deleted.",
        back=reverse("web:schedules", args=[slug]),
    )


def _do(
    request: HttpRequest,
    actor: Actor,
    place: tuple[str, str],
    action: Callable[[Actor, Schedule], object],
) -> HttpResponse:
    """Do it, and back to the schedule's page, with what there is to say."""
    slug, name = place
    schedule = schedule_named(actor, project_for(actor, slug), name)
    back = reverse("web:schedule", args=[slug, name])
    return attempt_action(request, lambda: action(actor, schedule), back=back)


def _change(actor: Actor, schedule: Schedule, content: ScheduleContent) -> Schedule:
    """Change a schedule; an unchanged specification is left out, so that it stays its owner's."""
    is_same = content.source == schedule.spec_source
    source = None if is_same else content.source
    content = ScheduleContent(source, content.cron, content.zone, content.overlap, content.catch_up)
    return change_schedule(actor, schedule, content)


def _typed(request: HttpRequest) -> QueryDict | None:
    return request.POST if request.method == "POST" else None


def _sent(form: ScheduleForm, act: Callable[[ScheduleContent], Schedule]) -> Schedule | None:
    """Return the schedule that `act` made of the form; None: the form shows the errors."""
    if not form.is_valid():
        return None
    fields = ("source", "cron", "zone", "overlap", "catch_up")
    try:
        return act(ScheduleContent(**{name: form.cleaned_data[name] for name in fields}))
    except InvalidSpecError as error:
        for row in error.data["errors"]:
            field = row["path"].removeprefix(_PREFIX)
            if row["path"] == field:
                form.spec_errors.append(row)
            else:
                form.add_error(field, row["message"])
    except ConflictError as error:
        form.add_error("name" if "name" in form.fields else None, error.message)
    return None


def _form_page(
    request: HttpRequest,
    actor: Actor,
    project: Project,
    form: ScheduleForm,
    context: dict[str, Any],
) -> HttpResponse:
    more = {
        **editor_context(form["source"].value() or ""),
        "project": project,
        "nav": "schedules",
        "form": form,
        "errors": form.spec_errors,
        "bad_lines": {row["line"] for row in form.spec_errors},
        "zones": zone_names(),
        **context,
    }
    template = "schedules/page.html" if context else "schedules/new.html"
    status = 422 if form.errors or form.spec_errors else 200
    return render_page(request, actor, template, more, project=project, status=status)
