"""Pages of a project's settings (rename, archive, delete), and the list of all projects."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from jobs.actions.projects.change_project import change_project
from jobs.actions.projects.close_projects import archive_project, delete_project, unarchive_project
from jobs.actions.projects.make_project import rename_project
from jobs.permissions import Actor, Verb, may, project_for, require
from jobs.readers.project_list import project_list, project_view
from jobs.statuses import ProjectState
from jobs.web.base.access import attempt_action, signed_in
from jobs.web.base.form_errors import accepted
from jobs.web.base.forms import DeleteProjectForm, ProjectForm
from jobs.web.base.frame import render_page


@require_safe
@signed_in
def all_projects(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Show the projects of the user, including archived ones."""
    lists = [(state, project_list(actor, state)) for state in ProjectState]
    context = {"lists": [(state.label, rows) for state, rows in lists if rows]}
    return render_page(request, actor, "projects/all.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def settings(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Show the settings; POST renames the project."""
    project = project_for(actor, slug)
    names = {"slug": project.slug, "name": project.name}
    form = ProjectForm(request.POST or None, initial=names)
    if request.method == "POST":
        require(actor, Verb.MANAGE_PROJECT, project)
        if form.is_valid() and accepted(
            form, lambda: rename_project(actor, project, **form.cleaned_data)
        ):
            messages.success(request, f"The project is now named {project.slug}.")
            return redirect("web:settings", slug=project.slug)
    return _page(request, actor, slug, form, DeleteProjectForm())


@require_POST
@signed_in
def laptops(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Allow laptops to attach to jobs that have a driver, or refuse it."""
    project = project_for(actor, slug)
    allowed = request.POST.get("allowed") == "yes"
    return attempt_action(
        request,
        lambda: change_project(actor, project, laptops_may_attach=allowed),
        done=f"Laptops {'may' if allowed else 'may not'} attach to running jobs.",
        back=reverse("web:policies", args=[project.slug]),
    )


@require_POST
@signed_in
def archive(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Make the project read-only."""
    project = project_for(actor, slug)
    return attempt_action(
        request,
        lambda: archive_project(actor, project),
        done=f"Project {project.slug} is archived.",
        back=reverse("web:settings", args=[project.slug]),
    )


@require_POST
@signed_in
def unarchive(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Let the project take jobs again."""
    project = project_for(actor, slug)
    return attempt_action(
        request,
        lambda: unarchive_project(actor, project),
        done=f"Project {project.slug} accepts jobs again. Its schedules are still paused.",
        back=reverse("web:settings", args=[project.slug]),
    )


@require_POST
@signed_in
def delete(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Delete the project, if its slug was typed again."""
    project = project_for(actor, slug)
    form = DeleteProjectForm(request.POST)
    confirmation = form.cleaned_data["confirm"] if form.is_valid() else ""
    name = project.slug
    if not accepted(form, lambda: delete_project(actor, project, confirmation)):
        names = ProjectForm(initial={"slug": name, "name": project.name})
        return _page(request, actor, slug, names, form)
    messages.success(request, f"Project {name} was deleted.")
    return redirect("web:all_projects")


def _page(
    request: HttpRequest,
    actor: Actor,
    slug: str,
    form: ProjectForm,
    delete_form: DeleteProjectForm,
) -> HttpResponse:
    project = project_for(actor, slug)
    context = {
        "project": project,
        "view": project_view(actor, project),
        "nav": "settings",
        "form": form,
        "delete_form": delete_form,
        "may_manage": may(actor, Verb.MANAGE_PROJECT, project),
    }
    return render_page(request, actor, "projects/settings.html", context, project=project)
