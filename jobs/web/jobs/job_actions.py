"""The buttons of a job, from cancel to delete: one action each, and back."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from jobs.actions.attempts.open_gateway import end_session
from jobs.actions.jobs.annotate import NOTE_LIMIT, label_job, set_note
from jobs.actions.jobs.cancel import cancel_job
from jobs.actions.jobs.delete import delete_job
from jobs.actions.jobs.extend import extend_job
from jobs.actions.jobs.hold import hold_job, release_job
from jobs.actions.jobs.prioritize import prioritize_job
from jobs.actions.jobs.rerun import rerun_job
from jobs.errors import ConflictError, InvalidLabelsError, InvalidSpecError, StorageFullError
from jobs.models import Job
from jobs.permissions import (
    Actor,
    Verb,
    job_for,
    require,
    require_extend,
    require_prioritize,
)
from jobs.web.base.access import attempt_action, signed_in
from jobs.web.base.form_errors import accepted
from jobs.web.base.forms import AnnotateForm, ExtendForm, PriorityForm
from monarch_client.spec.priorities import HIGHEST_PRIORITY, LOWEST_PRIORITY


@require_POST
@signed_in
def cancel(request: HttpRequest, actor: Actor, slug: str, job_id: int) -> HttpResponse:
    """Cancel the job and stay on its page."""
    return _do(request, actor, job_for(actor, slug, job_id), cancel_job)


@require_POST
@signed_in
def hold(request: HttpRequest, actor: Actor, slug: str, job_id: int) -> HttpResponse:
    """Hold the job back and stay on its page."""
    return _do(request, actor, job_for(actor, slug, job_id), hold_job)


@require_POST
@signed_in
def release(request: HttpRequest, actor: Actor, slug: str, job_id: int) -> HttpResponse:
    """Release the held job and stay on its page."""
    return _do(request, actor, job_for(actor, slug, job_id), release_job)


@require_POST
@signed_in
def prioritize(request: HttpRequest, actor: Actor, slug: str, job_id: int) -> HttpResponse:
    """Have the job wait with the priority that the form says."""
    job = job_for(actor, slug, job_id)
    require_prioritize(actor, job)
    form = PriorityForm(request.POST)
    if not form.is_valid():
        messages.error(request, f"Enter a priority from {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}.")
        return redirect("web:job", slug=slug, job_id=job_id)
    priority = form.cleaned_data["priority"]
    return _do(request, actor, job, lambda who, what: prioritize_job(who, what, priority))


@require_POST
@signed_in
def annotate(request: HttpRequest, actor: Actor, slug: str, job_id: int) -> HttpResponse:
    """Change labels and the note of the job to those of the form.

    A form that is refused is the answer, with its errors: the page shows it in its dialog.
    """
    job = job_for(actor, slug, job_id)
    require(actor, Verb.LABEL_JOB, job.project)
    form = AnnotateForm(request.POST)

    def apply() -> None:
        if form.label_changes:
            label_job(actor, job, form.label_changes)
        if form.new_note is not None:
            set_note(actor, job, form.new_note)

    if form.is_valid() and accepted(form, apply, refusals=(InvalidLabelsError,), field="labels"):
        return redirect("web:job", slug=slug, job_id=job_id)
    sent = {name: form[name].value() or "" for name in form.fields}
    context = {**sent, "action": request.path, "errors": form.errors, "note_limit": NOTE_LIMIT}
    return render(request, "jobs/_annotate_form.html", context, status=422)


@require_POST
@signed_in
def extend(request: HttpRequest, actor: Actor, slug: str, job_id: int) -> HttpResponse:
    """Let the job run longer by what the form says, once for each time it was shown."""
    job = job_for(actor, slug, job_id)
    require_extend(actor, job)
    form = ExtendForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Choose how long to extend the job.")
        return redirect("web:job", slug=slug, job_id=job_id)
    seconds, key = form.cleaned_data["duration"], form.cleaned_data["key"] or None
    return _do(
        request, actor, job, lambda who, what: extend_job(who, what, seconds, idempotency_key=key)
    )


@require_POST
@signed_in
def rerun(request: HttpRequest, actor: Actor, slug: str, job_id: int) -> HttpResponse:
    """Run the job again and go to the new one; a spec that no longer fits goes to the editor."""
    job = job_for(actor, slug, job_id)
    try:
        again = rerun_job(actor, job, drop_deleted="drop_deleted" in request.POST)
    except InvalidSpecError as error:
        messages.error(request, f"{error.summary} Fix it here, then submit.")
        return redirect(f"{reverse('web:submit', args=[slug])}?from={job_id}")
    except StorageFullError as error:
        messages.error(request, error.message)
        return redirect("web:job", slug=slug, job_id=job_id)
    messages.success(request, f"Job {job_id} was rerun as job {again.pk}.")
    return redirect("web:job", slug=slug, job_id=again.pk)


@require_POST
@signed_in
def delete(request: HttpRequest, actor: Actor, slug: str, job_id: int) -> HttpResponse:
    """Delete the job and go back to the table."""
    job = job_for(actor, slug, job_id)
    name = job.name
    try:
        delete_job(actor, job)
    except ConflictError as error:
        messages.error(request, error.message)
        return redirect("web:job", slug=slug, job_id=job_id)
    messages.success(request, f"Job {job_id} ({name}) was deleted.")
    return redirect("web:jobs", slug=slug)


@require_POST
@signed_in
def end_gateway_session(
    request: HttpRequest, actor: Actor, slug: str, job_id: int, session_id: int
) -> HttpResponse:
    """End the session of a program that is attached to the job."""
    job = job_for(actor, slug, job_id)
    back = reverse("web:job_tab", args=[slug, job_id, "nodes"])
    done = f"Session {session_id} was ended."
    return attempt_action(
        request, lambda: end_session(actor, job, session_id), back=back, done=done
    )


def _do(
    request: HttpRequest, actor: Actor, job: Job, action: Callable[[Actor, Job], Job]
) -> HttpResponse:
    """Do it, and back to the job's page, with what there is to say."""
    back = reverse("web:job", args=[job.project.slug, job.pk])
    return attempt_action(request, lambda: action(actor, job), back=back)
