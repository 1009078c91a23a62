"""The terminal of a node: a page of its own, and the ticket with which it connects."""

from __future__ import annotations

from django.conf import settings
from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from jobs.actions.attempts.open_gateway import ShellPurpose, open_session, why_not_reachable
from jobs.errors import ConflictError, PermissionDeniedError, TooManySessionsError
from jobs.models import Job
from jobs.permissions import Actor, Verb, job_for, may, require_attach
from jobs.statuses import JobStatus
from jobs.web.base.access import signed_in
from jobs.web.base.frame import render_page
from jobs.web.jobs.hosts_tab import number_in

# Below the portal's address.
_SOCKET_PATH = "/gateway/v1/terminal"
# xterm.js inserts style elements that stay empty, since the page's script takes over their text:
# the hash is that of no text.
_POLICY = settings.CONTENT_SECURITY_POLICY.replace(
    "style-src 'self'",
    "style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='",
)
_PURPOSE = "(terminal in the browser)"
# `make setup` takes it from npm, where there is one.
_XTERM = "jobs/vendor/xterm/xterm.js"


def may_open_terminal(actor: Actor, job: Job) -> bool:
    """Whether a terminal of `job` would open: pages link to no other."""
    if job.status != JobStatus.RUNNING or not _is_installed():
        return False
    try:
        require_attach(actor, job)
    except PermissionDeniedError:
        return False
    return not why_not_reachable(job, ShellPurpose.kind)


@require_safe
@signed_in
def page(request: HttpRequest, actor: Actor, slug: str, job_id: int) -> HttpResponse:
    """Show the terminal of a rank, which connects when the page has loaded."""
    job = job_for(actor, slug, job_id)
    require_attach(actor, job)
    context = {
        "job": job,
        "why_not": why_not_reachable(job, ShellPurpose.kind),
        "may_allow": may(actor, Verb.MANAGE_PROJECT, job.project),
        "is_installed": _is_installed(),
        "rank": _rank(request, job.num_hosts),
        "ranks": range(job.num_hosts),
        "socket": f"{settings.FORCE_SCRIPT_NAME or ''}{_SOCKET_PATH}",
        "ticket": reverse("web:terminal_ticket", args=[slug, job_id]),
    }
    response = render_page(request, actor, "jobs/terminal.html", context, project=job.project)
    response.headers["Content-Security-Policy"] = _POLICY
    return response


@require_POST
@signed_in
def ticket(request: HttpRequest, actor: Actor, slug: str, job_id: int) -> HttpResponse:
    """Open a session for a shell on a rank; answer with its ticket, or with what is in the way."""
    job = job_for(actor, slug, job_id)
    rank = _rank(request, job.num_hosts)
    try:
        _, opened = open_session(actor, job, ShellPurpose(rank, _PURPOSE))
    except (ConflictError, TooManySessionsError) as error:
        # A sentence that the page shows, not a failed request.
        return JsonResponse({"error": error.message})
    return JsonResponse({"ticket": opened})


def _is_installed() -> bool:
    """Whether the browser code of terminals is there."""
    return finders.find(_XTERM) is not None


def _rank(request: HttpRequest, num_nodes: int) -> int:
    return min(number_in(request.GET, "rank") or 0, num_nodes - 1)
