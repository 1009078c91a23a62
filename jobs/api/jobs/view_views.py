"""Saved views of the job table over REST."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.projects.saved_views import delete_view, save_view
from jobs.api.base.answers import answer_with, page_with
from jobs.api.base.flag_field import FlagField
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.base.text_field import TextField
from jobs.models.saved_view import NAME_LIMIT, QUERY_LIMIT
from jobs.permissions import Verb, require
from jobs.readers.saved_views import saved_views, view_answer
from monarch_client.wire.page import Page
from monarch_client.wire.views import SavedView


class ViewBody(serializers.Serializer[Any]):
    """A view to save; an own view of the same name is replaced."""

    name = TextField(max_length=NAME_LIMIT)
    query = TextField(
        max_length=QUERY_LIMIT, help_text="As in the address: `status=FAILED&since=24h`."
    )
    shared = FlagField(default=False, help_text="All members see it.")


class ViewListView(PortalView):
    """`/projects/{slug}/views`."""

    @extend_schema(operation_id="view_list", responses={200: Page[SavedView], **problems(401, 404)})
    def get(self, request: Request, slug: str) -> Response:
        """List your views of the job table, and those that others share, by name."""
        views = saved_views(self.actor, self.project())
        return page_with([_addressed(view, request) for view in views])

    @extend_schema(
        operation_id="view_save",
        request=ViewBody,
        responses={201: SavedView, **problems(400, 401, 403, 404, 409, 415, 422)},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Save a filter and order of the job table under a name."""
        project = self.project()
        require(self.actor, Verb.LABEL_JOB, project)
        body = self.parsed(ViewBody, request.data)
        view = save_view(self.actor, project, body["name"], body["query"], is_shared=body["shared"])
        answer = _addressed(view_answer(self.actor, project, view), request)
        return answer_with(answer, HTTPStatus.CREATED)


class ViewDetailView(PortalView):
    """`/projects/{slug}/views/{id}`."""

    @extend_schema(operation_id="view_delete", responses={204: None, **problems(401, 403, 404)})
    def delete(self, request: Request, slug: str, view_id: int) -> Response:
        """Delete a view of yours; admins also delete shared ones."""
        delete_view(self.actor, self.project(), view_id)
        return Response(status=204)


def _addressed(view: SavedView, request: Request) -> SavedView:
    return replace(view, url=request.build_absolute_uri(view.url))
