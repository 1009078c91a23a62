"""The members of a project: all members see the list, its admins change it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from jobs.actions.projects.members import remove_member, set_role
from jobs.errors import ConflictError, NotFoundError
from jobs.models import Project
from jobs.permissions import Actor, Verb, may, project_for
from jobs.readers.member_list import member_list
from jobs.statuses import Role
from jobs.web.base.access import attempt_action, signed_in
from jobs.web.base.forms import MemberForm
from jobs.web.base.frame import render_page


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def members(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Show the list; add a member with POST."""
    project = project_for(actor, slug)
    form = MemberForm(request.POST or None)
    if request.method == "POST" and form.is_valid() and _added(actor, project, form):
        return redirect("web:members", slug=slug)
    context = {
        "project": project,
        "nav": "settings",
        "members": member_list(actor, project),
        "form": form,
        "roles": Role.choices,
        "may_manage": may(actor, Verb.MANAGE_MEMBERS, project),
        "me": actor.user.get_username(),
    }
    return render_page(request, actor, "projects/members.html", context, project=project)


@require_POST
@signed_in
def change_role(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Give a member another role."""
    project = project_for(actor, slug)
    form = MemberForm(request.POST)
    if not form.is_valid():
        return redirect("web:members", slug=slug)
    name, role = form.cleaned_data["username"], Role(form.cleaned_data["role"])
    return attempt_action(
        request,
        lambda: set_role(actor, project, name, role),
        done=f"{name} is now {role.label.lower()}.",
        back=reverse("web:members", args=[slug]),
    )


@require_POST
@signed_in
def remove(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """End a membership."""
    project = project_for(actor, slug)
    # The database takes no NUL.
    name = request.POST.get("username", "").replace("\0", "")
    return attempt_action(
        request,
        lambda: remove_member(actor, project, name),
        done=f"{name} is no longer a member.",
        back=(
            reverse("web:landing")
            if name == actor.user.get_username()
            else reverse("web:members", args=[slug])
        ),
    )


def _added(actor: Actor, project: Project, form: MemberForm) -> bool:
    """Whether the form's user is a member now; else the form says why not."""
    try:
        set_role(actor, project, form.cleaned_data["username"], Role(form.cleaned_data["role"]))
    except (ConflictError, NotFoundError) as error:
        form.add_error("username", error.message)
        return False
    return True
