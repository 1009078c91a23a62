"""The members of a project: listed, added, given another role, removed."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.projects.members import remove_member, set_role
from jobs.api.base.answers import answer_with, page_with
from jobs.api.base.choice_field import ChoiceField
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.permissions import Verb, require
from jobs.readers.member_list import member_list, member_view
from jobs.statuses import Role
from monarch_client.wire.page import Page
from monarch_client.wire.projects import Member


class MemberBody(serializers.Serializer[Any]):
    """The role that a member is to have."""

    role = ChoiceField(choices=Role.choices)


class MemberListView(PortalView):
    """`/projects/{slug}/members`."""

    tag = "members"

    @extend_schema(
        operation_id="member_list",
        responses={200: Page[Member], **problems(401, 404)},
    )
    def get(self, request: Request, slug: str) -> Response:
        """List the project's members, by user name."""
        return page_with(member_list(self.actor, self.project()))


class MemberDetailView(PortalView):
    """`/projects/{slug}/members/{username}`."""

    tag = "members"

    @extend_schema(
        operation_id="member_set",
        request=MemberBody,
        responses={200: Member, **problems(400, 401, 403, 404, 409, 413, 415)},
    )
    def put(self, request: Request, slug: str, username: str) -> Response:
        """Add a user with that role, or give a member another one. Takes the role admin."""
        project = self.project()
        require(self.actor, Verb.MANAGE_MEMBERS, project)
        role = Role(self.parsed(MemberBody, request.data)["role"])
        return answer_with(member_view(set_role(self.actor, project, username, role)))

    @extend_schema(
        operation_id="member_remove", responses={204: None, **problems(401, 403, 404, 409)}
    )
    def delete(self, request: Request, slug: str, username: str) -> Response:
        """Remove a member. Their jobs stay, and go on. Takes the role admin."""
        remove_member(self.actor, self.project(), username)
        return Response(status=204)
