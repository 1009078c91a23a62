"""Actions on the selected jobs of the table: a page that confirms, and one with the outcomes."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from urllib.parse import parse_qsl, urlencode

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from jobs.actions.jobs.bulk import LEAST_VERB, BulkAction, BulkRequest, act_on_jobs, undo_of
from jobs.models import Project
from jobs.permissions import Actor, Verb, project_for, require
from jobs.readers.job_table import rows_by_number
from jobs.web.base.access import signed_in
from jobs.web.base.frame import render_page
from monarch_client.spec.label_keys import changes_in
from monarch_client.spec.priorities import HIGHEST_PRIORITY, LOWEST_PRIORITY
from monarch_client.wire.bulk import BULK_LIMIT, DONE, REFUSED, UNCHANGED, JobOutcome
from monarch_client.wire.consequences import Asked, consequences_of
from monarch_client.wire.jobs import Job

# The outcomes of the last action, in the session.
_LAST = "bulk_outcomes"
# A job's number; in a request that restores what was before, also its own priority or labels.
_JOB = re.compile(r"([0-9]{1,18})(?::(.{1,6000}))?")
_PRIORITY = re.compile("[0-9]{1,3}")
_LONGEST_QUERY = 2000


@dataclass(frozen=True, slots=True)
class Wording:
    """The text about an action. `hint` is shown before it, `can` finds the jobs for it.

    Without a `hint`, what the action does to the jobs in their states is shown.
    """

    verb: str
    hint: str
    done: str
    can: Callable[[Job], bool]
    is_dangerous: bool = False
    # What a second action takes back at once needs no confirmation.
    confirms: bool = True


WORDINGS = {
    BulkAction.CANCEL: Wording(
        "Cancel",
        "",
        "cancelled",
        lambda job: job.can_cancel,
        is_dangerous=True,
    ),
    BulkAction.RERUN: Wording(
        "Rerun",
        "",
        "rerun",
        lambda job: job.can_rerun,
    ),
    BulkAction.HOLD: Wording(
        "Hold",
        "",
        "held",
        lambda job: job.can_hold,
        confirms=False,
    ),
    BulkAction.RELEASE: Wording(
        "Release",
        "They may start again.",
        "released",
        lambda job: job.can_release,
        confirms=False,
    ),
    BulkAction.PRIORITIZE: Wording(
        "Change the priority of",
        f"From {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}; a higher priority starts first.",
        "prioritized",
        lambda job: job.can_prioritize,
    ),
    BulkAction.LABEL: Wording(
        "Label",
        "Write name=value to set a label and name- to remove it, separated by commas.",
        "labeled",
        lambda job: job.can_label,
    ),
    BulkAction.DELETE: Wording(
        "Delete",
        "",
        "deleted",
        lambda job: job.can_delete,
        is_dangerous=True,
    ),
}


class BulkForm(forms.Form):
    """The action on selected jobs. `sure` is missing before the confirmation."""

    action = forms.ChoiceField(choices=[(each.value, each.value) for each in BulkAction])
    priority = forms.IntegerField(
        required=False, min_value=LOWEST_PRIORITY, max_value=HIGHEST_PRIORITY
    )
    labels = forms.CharField(required=False, max_length=2000)
    # New for each page that asks: a repeated request reruns no job again.
    key = forms.CharField(required=False, max_length=100)
    sure = forms.BooleanField(required=False)

    def clean_labels(self) -> dict[str, str | None]:
        """Return the changes that the text names."""
        try:
            return _changes_in(self.cleaned_data["labels"])
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error


@require_POST
@signed_in
def bulk(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Apply the action to the selected jobs, after a page that asks where that is needed."""
    project = project_for(actor, slug)
    # Whoever may change nothing learns that first, whatever the form says.
    require(actor, Verb.SUBMIT_JOB, project)
    form = BulkForm(request.POST)
    chosen = _chosen(request.POST)
    if "action" in form.errors or not chosen:
        messages.error(request, _complaint(form, chosen))
        return redirect(_back(project, _back_query(request)))
    values = form.cleaned_data
    action = BulkAction(values["action"])
    require(actor, LEAST_VERB[action], project)
    if not form.is_valid():
        return _confirm(request, actor, project, action, list(chosen), _complaint(form, chosen))
    priorities = _priorities(action, chosen, values["priority"])
    labels = _labels(action, chosen, values["labels"])
    wording = WORDINGS[action]
    is_incomplete = priorities is None or labels is None
    if is_incomplete or (wording.confirms and not values["sure"]):
        return _confirm(request, actor, project, action, list(chosen))
    wanted = BulkRequest(
        action,
        list(chosen),
        priorities or {},
        labels or {},
        idempotency_key=values["key"] or None,
    )
    outcomes = act_on_jobs(actor, project, wanted)
    request.session[_LAST] = {
        "project": project.pk,
        "action": action.value,
        "back": _back_query(request),
        "outcomes": [asdict(outcome) for outcome in outcomes],
    }
    return redirect("web:bulk_done", slug=project.slug)


@require_safe
@signed_in
def done(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Show what happened to each job of the last action, and what takes it back."""
    project = project_for(actor, slug)
    last = request.session.get(_LAST)
    if not last or last["project"] != project.pk:
        return redirect("web:jobs", slug=project.slug)
    action = BulkAction(last["action"])
    outcomes = [JobOutcome(**each) for each in last["outcomes"]]
    counts = {
        result: sum(outcome.result == result for outcome in outcomes)
        for result in (DONE, UNCHANGED, REFUSED)
    }
    undo = undo_of(action, outcomes)
    context = {
        "project": project,
        "nav": "jobs",
        "wording": WORDINGS[action],
        "outcomes": sorted(outcomes, key=lambda outcome: not outcome.is_refused),
        "counts": counts,
        "back": _back(project, last["back"]),
        "back_query": last["back"],
        "undo": undo,
        "undo_wording": undo and WORDINGS[undo.action],
        "undo_jobs": undo and [_job_value(undo, number) for number in undo.job_ids],
    }
    return render_page(request, actor, "jobs/bulk_done.html", context, project=project)


def _confirm(
    request: HttpRequest,
    actor: Actor,
    project: Project,
    action: BulkAction,
    numbers: list[int],
    complaint: str = "",
) -> HttpResponse:
    rows, wording = rows_by_number(actor, project, numbers), WORDINGS[action]
    fit = [row for row in rows if wording.can(row)]
    back, typed = _back_query(request), request.POST
    context = {
        "project": project,
        "nav": "jobs",
        "action": action.value,
        "wording": wording,
        "consequences": [wording.hint] if wording.hint else consequences_of(Asked(action), fit),
        "fit": fit,
        "unfit": [row for row in rows if not wording.can(row)],
        "takes_priority": action == BulkAction.PRIORITIZE,
        "takes_labels": action == BulkAction.LABEL,
        "lowest_priority": LOWEST_PRIORITY,
        "highest_priority": HIGHEST_PRIORITY,
        "complaint": complaint,
        "priority": typed.get("priority") or (fit[0].priority if fit else None),
        "labels": typed.get("labels", ""),
        "key": typed.get("key") or uuid.uuid4().hex,
        "back": _back(project, back),
        "back_query": back,
    }
    return render_page(request, actor, "jobs/bulk.html", context, project=project)


def _chosen(fields: QueryDict) -> dict[int, str]:
    """Return the chosen jobs, each with the priority or labels to restore, if any."""
    found = [match for text in fields.getlist("job") if (match := _JOB.fullmatch(text))]
    return dict([(int(match[1]), match[2] or "") for match in found][:BULK_LIMIT])


def _priorities(
    action: BulkAction, chosen: dict[int, str], priority: int | None
) -> dict[int, int] | None:
    """Return the priority of each job; None if one is missing."""
    if action != BulkAction.PRIORITIZE:
        return {}
    found = {}
    for number, own in chosen.items():
        restored = int(own) if priority is None and _PRIORITY.fullmatch(own) else priority
        if restored is not None and LOWEST_PRIORITY <= restored <= HIGHEST_PRIORITY:
            found[number] = restored
    return found if len(found) == len(chosen) else None


def _labels(
    action: BulkAction, chosen: dict[int, str], changes: dict[str, str | None]
) -> dict[int, dict[str, str | None]] | None:
    """Return the changes of labels of each job; None if they are missing."""
    if action != BulkAction.LABEL:
        return {}
    try:
        found = {number: changes or _changes_in(own) for number, own in chosen.items()}
    except ValueError:
        return None
    return found if all(found.values()) else None


def _changes_in(text: str) -> dict[str, str | None]:
    """Return the changes of labels in a list such as "team=rl, draft-". ValueError: none."""
    return changes_in(word for each in text.split(",") if (word := each.strip()))


def _complaint(form: BulkForm, chosen: dict[int, str]) -> str:
    if not chosen:
        return "Select jobs first."
    if "priority" in form.errors:
        return f"Enter a priority from {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}."
    if "labels" in form.errors:
        return str(form.errors["labels"][0])
    return "Choose an action for the selected jobs."


def _job_value(request: BulkRequest, number: int) -> str:
    if number in request.priorities:
        return f"{number}:{request.priorities[number]}"
    changes = request.labels.get(number, {}).items()
    own = ",".join(f"{name}-" if value is None else f"{name}={value}" for name, value in changes)
    return f"{number}:{own}" if own else str(number)


def _back_query(request: HttpRequest) -> str:
    """Return the query of the table to return to."""
    return request.POST.get("back", "").replace("\0", "")[:_LONGEST_QUERY]


def _back(project: Project, query: str) -> str:
    place = reverse("web:jobs", args=[project.slug])
    parts = parse_qsl(query, keep_blank_values=True)
    return f"{place}?{urlencode(parts, safe=',')}" if parts else place
