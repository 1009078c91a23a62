"""Saved views of the job table: save the present one, delete one."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from jobs.actions.projects.saved_views import delete_view, save_view
from jobs.errors import NotFoundError
from jobs.models.saved_view import NAME_LIMIT, QUERY_LIMIT
from jobs.permissions import Actor, Verb, project_for, require
from jobs.web.base.access import attempt_action, signed_in
from jobs.web.jobs.table_query import view_query_of


class ViewForm(forms.Form):
    """The name of a view; `query` is that of the table's address."""

    name = forms.CharField(max_length=NAME_LIMIT)
    query = forms.CharField(required=False, max_length=QUERY_LIMIT)
    shared = forms.BooleanField(required=False)


class DeleteViewForm(forms.Form):
    """The view to delete."""

    view = forms.IntegerField(min_value=1, max_value=2**62)


@require_POST
@signed_in
def save(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Save the filters and the order of the table, and stay there."""
    project = project_for(actor, slug)
    require(actor, Verb.LABEL_JOB, project)
    form = ViewForm(request.POST)
    if not form.is_valid():
        messages.error(request, f"Give the view a name of 1 to {NAME_LIMIT} characters.")
        return redirect("web:jobs", slug=slug)
    values = form.cleaned_data
    name, query = values["name"], values["query"]
    return attempt_action(
        request,
        lambda: save_view(actor, project, name, query, is_shared=values["shared"]),
        back=f"{reverse('web:jobs', args=[slug])}?{view_query_of(query)}",
        done=f"View {name} is saved.",
    )


@require_POST
@signed_in
def delete(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Delete a view and stay on the table."""
    project = project_for(actor, slug)
    require(actor, Verb.LABEL_JOB, project)
    form = DeleteViewForm(request.POST)
    try:
        if not form.is_valid():
            raise NotFoundError("Choose a view to delete.")
        delete_view(actor, project, form.cleaned_data["view"])
    except NotFoundError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, "The view is deleted.")
    return redirect("web:jobs", slug=slug)
