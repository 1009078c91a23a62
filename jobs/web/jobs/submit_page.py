"""The submit page: an editor for the job's YAML, checked by the same action as everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from jobs.actions.jobs.submit import expect_job
from jobs.actions.jobs.submit_documents import submit_documents
from jobs.errors import ConflictError, InvalidSpecError, NotFoundError, StorageFullError
from jobs.models import Job, Project
from jobs.permissions import Actor, Verb, project_for, require
from jobs.readers.job_page import job_detail
from jobs.web.base.access import signed_in
from jobs.web.base.frame import render_page
from jobs.web.jobs.code_editor import editor_context
from jobs.web.jobs.examples import EXAMPLES, example
from jobs.web.jobs.spec_form import spec_fields_in

MAX_KEY_LENGTH = 64


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def submit(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Show the empty, prefilled or refused form; a valid form leads to the new job's page."""
    project = project_for(actor, slug)
    require(actor, Verb.SUBMIT_JOB, project)
    source, errors, status = first_source(request, actor, slug), [], 200
    expect_job()
    if request.method == "POST":
        source = request.POST.get("source", "").replace("\r\n", "\n")
        try:
            jobs = submit_documents(actor, project, source, idempotency_key=submitted_key(request))
        except InvalidSpecError as error:
            errors = error.data.get("errors", [])
        except (StorageFullError, ConflictError) as error:
            messages.error(request, error.message)
            status = error.http_status
        else:
            return redirect(url_of_jobs(slug, jobs))
    return submit_form(request, actor, project, source, errors, status)


def submit_form(
    request: HttpRequest,
    actor: Actor,
    project: Project,
    source: str,
    errors: Sequence[dict[str, Any]] = (),
    status: int = 200,
) -> HttpResponse:
    """Render the editor with this text and what is wrong with it."""
    earlier = request.POST.get("from", "") or request.GET.get("from", "")
    original = edited_source(actor, project.slug, earlier)
    context: dict[str, Any] = {
        **editor_context(source, original=original or ""),
        "project": project,
        "nav": "jobs",
        "errors": errors,
        "bad_lines": {row["line"] for row in errors},
        "examples": EXAMPLES,
        "earlier": earlier,
        "spec_fields": spec_fields_in(project),
    }
    return render_page(
        request,
        actor,
        "jobs/submit.html",
        context,
        project=project,
        status=422 if errors else status,
    )


def url_of_jobs(slug: str, jobs: Sequence[Job]) -> str:
    """Return the page of what was submitted: the job's, its array's, or that of all jobs."""
    arrays = {job.array_id for job in jobs}
    if len(jobs) == 1:
        return reverse("web:job", args=[slug, jobs[0].pk])
    if len(arrays) == 1 and None not in arrays:
        return reverse("web:array", args=[slug, jobs[0].array_id])
    return reverse("web:jobs", args=[slug])


def first_source(request: HttpRequest, actor: Actor, slug: str) -> str:
    """Return the editor's first text: an example, an earlier job's spec, or the first example."""
    earlier = request.GET.get("from", "")
    if earlier.isascii() and earlier.isdecimal():
        return earlier_source(actor, slug, earlier)
    return example(request.GET.get("example", "")).source


def earlier_source(actor: Actor, slug: str, job_id: str) -> str:
    """Return the specification of an earlier job as it was sent. NotFoundError: there is none."""
    if not (job_id.isascii() and job_id.isdecimal()) or len(job_id) > len(str(2**62)):
        raise NotFoundError
    return job_detail(actor, slug, int(job_id)).spec_source


def edited_source(actor: Actor, slug: str, job_id: str) -> str | None:
    """Return the specification of the job that is edited; None if there is none any more.

    What was typed stays also when the job was deleted meanwhile.
    """
    try:
        return earlier_source(actor, slug, job_id)
    except NotFoundError:
        return None


def submitted_key(request: HttpRequest) -> str | None:
    """Return the key that the page's script sends, new for each visit: two clicks are one job."""
    key = request.POST.get("key", "")[:MAX_KEY_LENGTH]
    return key if key.isprintable() and key else None
