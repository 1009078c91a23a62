"""The secrets of a project: their names for members; maintainers set and delete them."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from jobs.actions.projects.secrets import delete_secret, set_secret
from jobs.errors import ConflictError, InvalidSecretError, SecretsUnavailableError
from jobs.models import Project
from jobs.permissions import Actor, Verb, may, project_for
from jobs.readers.secret_list import secret_list
from jobs.web.base.access import attempt_action, signed_in
from jobs.web.base.forms import SecretForm
from jobs.web.base.frame import render_page


@never_cache
@sensitive_post_parameters("value")
@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def secrets(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Show the list; with POST, set another value for one of them, or a new one."""
    project = project_for(actor, slug)
    form = SecretForm(request.POST or None)
    if request.method == "POST" and form.is_valid() and _is_set(request, actor, project, form):
        return redirect("web:secrets", slug=slug)
    context = {
        "project": project,
        "nav": "settings",
        "secrets": secret_list(actor, project),
        "form": form,
        "may_manage": may(actor, Verb.MANAGE_SECRETS, project),
    }
    return render_page(request, actor, "projects/secrets.html", context, project=project)


@require_POST
@signed_in
def delete(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Remove one."""
    project = project_for(actor, slug)
    # The database takes no NUL.
    name = request.POST.get("name", "").replace("\0", "")
    return attempt_action(
        request,
        lambda: delete_secret(actor, project, name),
        done=f"{name} is deleted.",
        back=reverse("web:secrets", args=[slug]),
    )


def _is_set(request: HttpRequest, actor: Actor, project: Project, form: SecretForm) -> bool:
    """Whether it is set now; else the form says why not."""
    name = form.cleaned_data["name"]
    try:
        secret = set_secret(actor, project, name, form.cleaned_data["value"])
    except (ConflictError, InvalidSecretError, SecretsUnavailableError) as error:
        form.add_error(error.data.get("field", "name"), error.message)
        return False
    short = "" if secret.is_masked else " Its value is too short to be masked in logs."
    messages.success(request, f"{name} is set.{short}")
    return True
