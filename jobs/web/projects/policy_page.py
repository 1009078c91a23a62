"""The page of a project's policies: limits, quotas, weight, and laptops in running jobs."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from jobs.actions.projects.set_limits import MOST_MINUTES, MOST_S, set_limits
from jobs.permissions import Actor, Verb, may, project_for, require_sharing
from jobs.readers.project_limits import project_limits
from jobs.readers.project_list import project_view
from jobs.readers.queue_state import QueueState
from jobs.web.base.access import signed_in
from jobs.web.base.frame import render_page
from monarch_client.spec.durations import seconds_in, text_of


class LimitsForm(forms.Form):
    """The limits of a project."""

    max_duration = forms.CharField(
        required=False,
        max_length=50,
        label="Longest run of a job",
        help_text="A length of time such as 12h or 7d. Empty: no limit of the project.",
        widget=forms.TextInput({"autocomplete": "off"}),
    )
    max_idle_minutes = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_MINUTES,
        label="Idle minutes of a cluster",
        help_text="Empty: no limit of the project.",
    )

    def clean_max_duration(self) -> int | None:
        """Return seconds, or None without a limit."""
        text = self.cleaned_data["max_duration"].strip()
        if not text:
            return None
        seconds = seconds_in(text)
        if seconds is None or not 1 <= seconds <= MOST_S:
            raise forms.ValidationError("Enter a length of time such as 12h or 7d, up to 366d.")
        return seconds


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def page(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Show the policies; POST sets the limits."""
    project = project_for(actor, slug)
    if request.method == "POST":
        require_sharing(actor)
    limits = project_limits(actor, project)
    shown = limits.max_duration_s and text_of(limits.max_duration_s)
    initial = {"max_duration": shown or "", "max_idle_minutes": limits.max_idle_minutes}
    # Two empty fields are a form as well.
    typed = request.POST if request.method == "POST" else None
    form = LimitsForm(typed, initial=initial)
    if request.method == "POST" and form.is_valid():
        set_limits(
            actor,
            project,
            max_duration_s=form.cleaned_data["max_duration"],
            max_idle_minutes=form.cleaned_data["max_idle_minutes"],
        )
        messages.success(request, "The limits are set. They hold at once.")
        return redirect("web:policies", slug=slug)
    context = {
        "project": project,
        "view": project_view(actor, project),
        "nav": "settings",
        "form": form,
        "limits": limits,
        "quotas": QueueState(actor).quotas(project),
        "may_manage": may(actor, Verb.MANAGE_PROJECT, project),
    }
    return render_page(request, actor, "projects/policies.html", context, project=project)
