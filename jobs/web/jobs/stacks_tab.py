"""The stack dumps of a job: ask a rank for one, read one of those that came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from jobs.actions.attempts.ask_stacks import MOST_KEPT, ask_all_stacks, ask_stacks
from jobs.permissions import Actor, job_for, require_stacks
from jobs.readers.stacks import StackChoice, job_stacks
from jobs.statuses import StackState
from jobs.web.base.access import attempt_action, signed_in
from jobs.web.base.forms import StacksForm
from jobs.web.jobs.hosts_tab import number_in


@require_POST
@signed_in
def ask(request: HttpRequest, actor: Actor, slug: str, job_id: int) -> HttpResponse:
    """Request the dump of the form, and show it as soon as it comes."""
    job = job_for(actor, slug, job_id)
    require_stacks(actor, job)
    back = _address(slug, job_id)
    form = StacksForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Choose a node of the job and, optionally, a process id.")
        return redirect(back)
    rank, pid = form.cleaned_data["rank"], form.cleaned_data["pid"]
    return attempt_action(request, lambda: ask_stacks(actor, job, rank, pid), back=back)


@require_POST
@signed_in
def ask_all(request: HttpRequest, actor: Actor, slug: str, job_id: int) -> HttpResponse:
    """Request the dumps of all ranks, and show equal stacks together as they come."""
    job = job_for(actor, slug, job_id)
    require_stacks(actor, job)
    return attempt_action(request, lambda: ask_all_stacks(actor, job), back=_address(slug, job_id))


def _address(slug: str, job_id: int) -> str:
    return reverse("web:job_tab", args=[slug, job_id, "nodes"]) + "?show=stacks"


def stacks_context(
    actor: Actor, slug: str, job_id: int, query: Mapping[str, str]
) -> dict[str, Any]:
    """Return the context of the tab; `query` may choose attempt, rank and dump."""
    attempt_number = number_in(query, "attempt")
    choice = StackChoice(attempt_number, shown=number_in(query, "dump"))
    found = job_stacks(actor, slug, job_id, choice)
    wanted = next((dump for dump in found.dumps if dump.id == choice.shown), None)
    together = [dump for dump in found.dumps if dump.id in found.asked_together]
    shown = wanted or next(iter(found.dumps), None)
    if shown in together:
        shown = None
    rank = number_in(query, "rank")
    if rank is None:
        rank = shown.rank if shown else 0
    return {
        "slug": slug,
        "job_id": job_id,
        "stacks": found,
        "is_final": found.is_final,
        "asked_attempt": attempt_number,
        "stack_rank": rank,
        "last_rank": found.ranks - 1,
        "shown_dump": shown,
        "most_ranks": MOST_KEPT,
        "waiting_ranks": [dump.rank for dump in together if dump.state == StackState.REQUESTED],
        "together": together,
    }
