"""Templates: their list, the form of each, and the editor of their text."""

from __future__ import annotations

import re
import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from jobs.actions.jobs.submit import expect_job
from jobs.actions.templates.run_template import fill_in, run_template
from jobs.actions.templates.save_template import delete_template, parsed, save_template
from jobs.errors import ConflictError, InvalidSpecError, NotFoundError, StorageFullError
from jobs.models import Job, Project
from jobs.permissions import (
    Actor,
    Verb,
    may,
    may_change_installation,
    project_for,
    require,
)
from jobs.readers.templates import found_template, template_list, template_page
from jobs.statuses import TemplateScope
from jobs.web.base.access import attempt_action, signed_in
from jobs.web.base.frame import render_page
from jobs.web.jobs.code_editor import editor_context
from jobs.web.jobs.submit_page import first_source, submit_form, submitted_key, url_of_jobs
from jobs.web.templates.parameter_form import ParameterForm
from monarch_client.wire.templates import TemplateDetail

_NEW = """\
name: my-template
title: My template
about: What the job does, and what it needs.
parameters:
  nodes: {type: integer, title: Nodes, minimum: 1, maximum: 64, default: 1}
---
"""
_ALL = "all"
_WORKDIR = re.compile(r"^workdir:\s*\$\{\{\s*(\w+)\s*\}\}", re.MULTILINE)


class TemplateTextForm(forms.Form):
    """The text of a template, which the page shows in its editor, and whom it is for."""

    source = forms.CharField(strip=False, required=False)
    scope = forms.ChoiceField(
        choices=[("", "This project"), (_ALL, "All projects")], required=False
    )

    def __init__(self, *args: Any, may_share: bool, may_own: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not may_share:
            del self.fields["scope"]
        elif not may_own:
            self.fields["scope"].initial = _ALL


@require_safe
@signed_in
def templates(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Show the list of templates."""
    project = project_for(actor, slug)
    context = {
        "project": project,
        "nav": "jobs",
        "templates": template_list(actor, project),
        "may_save": _may_save(actor, project),
        "may_submit": may(actor, Verb.SUBMIT_JOB, project),
    }
    return render_page(request, actor, "templates/list.html", context, project=project)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def page(request: HttpRequest, actor: Actor, slug: str, template_name: str) -> HttpResponse:
    """Show a template's form. POST submits its job, or opens it in the editor as YAML."""
    project = project_for(actor, slug)
    found = template_page(actor, project, template_name, _number(request))
    form = ParameterForm(found.parameters, request.POST if request.method == "POST" else None)
    status = 200
    if request.method == "POST":
        require(actor, Verb.SUBMIT_JOB, project)
        if (answer := _sent(request, actor, project, found, form)) is not None:
            return answer
        status = 422
    else:
        expect_job()
    context = {
        "project": project,
        "nav": "jobs",
        "template": found,
        "form": form,
        "workdir_parameter": _workdir_parameter(found.source),
        "may_submit": may(actor, Verb.SUBMIT_JOB, project),
        "key": uuid.uuid4().hex,
        "is_project": found.scope == TemplateScope.PROJECT,
        "may_save": _may_save(actor, project),
    }
    return render_page(
        request, actor, "templates/page.html", context, project=project, status=status
    )


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def edit(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Show the editor: of a new template, of another's text, or of a job's specification."""
    project = project_for(actor, slug)
    may_own, may_share = _rights(actor, project)
    if not may_own and not may_share:
        require(actor, Verb.MANAGE_TEMPLATES, project)
    form = TemplateTextForm(
        request.POST if request.method == "POST" else None,
        initial=_initial(request, actor, project) if request.method != "POST" else None,
        may_share=may_share,
        may_own=may_own,
    )
    errors: list[dict[str, Any]] = []
    if request.method == "POST" and form.is_valid():
        owner = None if form.cleaned_data.get("scope") == _ALL else project
        try:
            row = save_template(actor, owner, form.cleaned_data["source"])
        except InvalidSpecError as error:
            errors = error.data["errors"]
        except ConflictError as error:
            form.add_error(None, error.message)
        else:
            messages.success(request, f"{row.name} is saved as version {row.number}.")
            return redirect("web:template", slug=slug, template_name=row.name)
    source = form["source"].value() or ""
    context = {
        **editor_context(source, original=_original(request, actor, project)),
        "project": project,
        "nav": "jobs",
        "form": form,
        "errors": errors,
        "bad_lines": {row["line"] for row in errors},
        "placeholder": "${{ nodes }}",
    }
    status = 422 if errors or form.errors else 200
    return render_page(
        request, actor, "templates/edit.html", context, project=project, status=status
    )


def _workdir_parameter(source: str) -> str:
    """Return the parameter that is the work directory, which an upload fills; "" if none is."""
    found = _WORKDIR.search(source)
    return found[1] if found else ""


@require_POST
@signed_in
def check(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Return what is wrong with the text of a template, as its editor shows it."""
    project = project_for(actor, slug)
    if not _may_save(actor, project):
        require(actor, Verb.MANAGE_TEMPLATES, project)
    errors: list[dict[str, Any]] = []
    try:
        parsed(request.body.decode("utf-8", "replace"))
    except InvalidSpecError as error:
        errors = error.data["errors"]
    return JsonResponse({"valid": not errors, "errors": errors})


@require_POST
@signed_in
def delete(request: HttpRequest, actor: Actor, slug: str, template_name: str) -> HttpResponse:
    """Delete the project's template, never one of all projects, and go to the list."""
    project = project_for(actor, slug)
    require(actor, Verb.MANAGE_TEMPLATES, project)
    return attempt_action(
        request,
        lambda: delete_template(actor, project, template_name),
        done=f"{template_name} is deleted.",
        back=reverse("web:templates", args=[slug]),
    )


def _sent(
    request: HttpRequest,
    actor: Actor,
    project: Project,
    found: TemplateDetail,
    form: ParameterForm,
) -> HttpResponse | None:
    """Return the answer to a valid form; None: the form shows what is wrong."""
    if not form.is_valid():
        return None
    try:
        if "as_yaml" in request.POST:
            filled = found_template(actor, project, found.name, found.version)
            return submit_form(request, actor, project, fill_in(filled, form.values()))
        jobs: list[Job] = run_template(
            actor,
            project,
            found.name,
            form.values(),
            number=found.version,
            idempotency_key=submitted_key(request),
        )
    except InvalidSpecError as error:
        form.show_errors(error.data.get("errors", []))
    except (StorageFullError, ConflictError) as error:
        form.add_error(None, error.message)
    else:
        return redirect(url_of_jobs(project.slug, jobs))
    return None


def _initial(request: HttpRequest, actor: Actor, project: Project) -> dict[str, Any]:
    found = _edited(request, actor, project)
    if found is None:
        return {"source": _NEW + first_source(request, actor, project.slug)}
    is_shared = found.scope == TemplateScope.INSTALLATION and found.can_manage
    return {"source": found.source, "scope": _ALL if is_shared else ""}


def _edited(request: HttpRequest, actor: Actor, project: Project) -> TemplateDetail | None:
    """Return the template that the address names; None: a new one is written."""
    name = request.GET.get("template", "")
    return template_page(actor, project, name, _number(request)) if name else None


def _original(request: HttpRequest, actor: Actor, project: Project) -> str:
    """Return the text that the editor shows changes against."""
    try:
        found = _edited(request, actor, project)
    except NotFoundError:
        # It was deleted meanwhile: what was typed counts.
        return ""
    return found.source if found else ""


def _rights(actor: Actor, project: Project) -> tuple[bool, bool]:
    """Return whether the actor saves templates in the project, and for all projects."""
    return may(actor, Verb.MANAGE_TEMPLATES, project), may_change_installation(actor)


def _may_save(actor: Actor, project: Project) -> bool:
    return any(_rights(actor, project))


def _number(request: HttpRequest) -> int | None:
    text = request.GET.get("version", "")
    is_number = text.isascii() and text.isdecimal() and len(text) < len(str(2**31))
    return int(text) if is_number else None
