"""The members of a project: listed, added, given another role, removed."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.projects.members import remove_member, set_role
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import page_of, problems
from jobs.permissions import Verb, require
from jobs.readers.member_list import member_list, member_view
from jobs.statuses import Role


class MemberSerializer(serializers.Serializer[Any]):
    """A member of a project."""

    username = serializers.CharField()
    role = serializers.ChoiceField(choices=Role.choices)
    is_active = serializers.BooleanField(help_text="Whether the account may sign in.")


class MemberBody(serializers.Serializer[Any]):
    """The role that a member is to have."""

    role = serializers.ChoiceField(choices=Role.choices)


class MemberListView(PortalView):
    """`/projects/{slug}/members`."""

    tag = "members"

    @extend_schema(
        operation_id="member_list",
        responses={200: page_of(MemberSerializer), **problems(401, 404)},
    )
    def get(self, request: Request, slug: str) -> Response:
        """The project's members, by user name."""
        rows = MemberSerializer(member_list(self.actor, self.project()), many=True).data
        return Response({"results": rows, "next": None, "previous": None})


class MemberDetailView(PortalView):
    """`/projects/{slug}/members/{username}`."""

    tag = "members"

    @extend_schema(
        operation_id="member_set",
        request=MemberBody,
        responses={200: MemberSerializer, **problems(400, 401, 403, 404, 409, 413, 415)},
    )
    def put(self, request: Request, slug: str, username: str) -> Response:
        """Add a user with that role, or give a member another one. Takes the role admin."""
        project = self.project()
        require(self.actor, Verb.MANAGE_MEMBERS, project)
        role = Role(self.parsed(MemberBody, request.data)["role"])
        return Response(
            MemberSerializer(member_view(set_role(self.actor, project, username, role))).data
        )

    @extend_schema(
        operation_id="member_remove", responses={204: None, **problems(401, 403, 404, 409)}
    )
    def delete(self, request: Request, slug: str, username: str) -> Response:
        """Remove a member. Their jobs stay, and go on. Takes the role admin."""
        remove_member(self.actor, self.project(), username)
        return Response(status=204)
