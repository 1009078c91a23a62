"""Users of the installation: invited, disabled, made administrators; and their sessions."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.accounts.change_user import change_user, end_sessions
from jobs.actions.accounts.sign_in_links import MOST_HOURS, Link, replace_sign_in_link
from jobs.actions.projects.invite_user import invite_user
from jobs.api.base.answers import answer_with, page_with
from jobs.api.base.choice_field import ChoiceField
from jobs.api.base.flag_field import FlagField
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.api.base.text_field import TextField
from jobs.api.base.whole_number_field import WholeNumberField
from jobs.permissions import require_users
from jobs.readers.user_list import PAGE, STATES, session_list, user_list, user_view
from jobs.statuses import Role
from monarch_client.wire.page import Page
from monarch_client.wire.users import Invitation, Session, User

_CHANGES = problems(400, 401, 403, 404, 409, 413, 415)


class UserListQuery(serializers.Serializer[Any]):
    """The filters of the user list."""

    q = serializers.CharField(
        required=False, allow_blank=True, default="", help_text="A part of the name."
    )
    state = ChoiceField(choices=STATES, required=False, default="all")
    cursor = serializers.CharField(
        required=False, allow_blank=True, default="", help_text="`next` of before."
    )
    limit = WholeNumberField(required=False, default=PAGE, min_value=1, max_value=PAGE)


class LinkBody(serializers.Serializer[Any]):
    """The lifetime of a sign-in link."""

    hours = WholeNumberField(required=False, default=48, min_value=1, max_value=MOST_HOURS)


class InviteBody(LinkBody):
    """A user to invite."""

    username = TextField(max_length=150)
    project = TextField(
        required=False, default="", allow_blank=True, help_text="Their first project."
    )
    role = ChoiceField(choices=Role.choices, required=False, default=Role.MEMBER)


class UserBody(serializers.Serializer[Any]):
    """The changes to a user; what is left out does not change."""

    is_active = FlagField(required=False)
    is_admin = FlagField(required=False)


class UserListView(PortalView):
    """`/users`."""

    tag = "users"

    @extend_schema(
        operation_id="user_list",
        parameters=[UserListQuery],
        responses={200: Page[User], **problems(400, 401, 403)},
    )
    def get(self, request: Request) -> Response:
        """List the users of the installation, by name. For administrators."""
        require_users(self.actor)
        query = self.parsed(UserListQuery, request.query_params)
        found = user_list(
            self.actor,
            search=query["q"],
            state=query["state"],
            after=query["cursor"],
            limit=query["limit"],
        )
        return page_with(found.results, next=found.next)

    @extend_schema(
        operation_id="user_invite",
        request=InviteBody,
        responses={201: Invitation, **_CHANGES},
    )
    def post(self, request: Request) -> Response:
        """Create a user. The answer has the link that signs them in once. For administrators."""
        require_users(self.actor, to_change=True)
        body = self.parsed(InviteBody, request.data)
        link = invite_user(self.actor, **{**body, "role": Role(body["role"])})
        return _answer_link(request, link)


class UserView(PortalView):
    """`/users/{username}`."""

    tag = "users"

    @extend_schema(operation_id="user_get", responses={200: User, **problems(401, 403, 404)})
    def get(self, request: Request, username: str) -> Response:
        """Show a user of the installation. For administrators."""
        return answer_with(user_view(self.actor, username))

    @extend_schema(operation_id="user_change", request=UserBody, responses={200: User, **_CHANGES})
    def patch(self, request: Request, username: str) -> Response:
        """Disable or enable a user, or set whether they administer the installation.

        The sessions and links of a disabled user end. 409 for the last administrator.
        """
        require_users(self.actor, to_change=True)
        change_user(self.actor, username, **self.parsed(UserBody, request.data))
        return answer_with(user_view(self.actor, username))


class UserLinkView(PortalView):
    """`/users/{username}/actions/link`."""

    tag = "users"

    @extend_schema(
        operation_id="user_link",
        request=LinkBody,
        responses={200: Invitation, **_CHANGES},
    )
    def post(self, request: Request, username: str) -> Response:
        """Create a link that signs the user in once; earlier links no longer work."""
        require_users(self.actor, to_change=True)
        hours = self.parsed(LinkBody, request.data)["hours"]
        return _answer_link(request, replace_sign_in_link(self.actor, username, hours=hours), 200)


class SessionListView(PortalView):
    """`/users/{username}/sessions`."""

    tag = "users"

    @extend_schema(
        operation_id="session_list",
        responses={200: Page[Session], **problems(401, 403, 404)},
    )
    def get(self, request: Request, username: str) -> Response:
        """List the browsers in which a user is signed in; `me` is the caller."""
        current = request.session.session_key
        return page_with(session_list(self.actor, username, current))

    @extend_schema(operation_id="sessions_end", responses={204: None, **problems(401, 403, 404)})
    def delete(self, request: Request, username: str) -> Response:
        """End all sessions of a user; `me` is the caller. Tokens still work."""
        end_sessions(self.actor, username)
        return Response(status=204)


class SessionView(PortalView):
    """`/users/{username}/sessions/{id}`."""

    tag = "users"

    @extend_schema(operation_id="session_end", responses={204: None, **problems(401, 403, 404)})
    def delete(self, request: Request, username: str, session_id: str) -> Response:
        """End one session of a user; `me` is the caller."""
        end_sessions(self.actor, username, session_id)
        return Response(status=204)


def _answer_link(request: Request, link: Link, status: int = 201) -> Response:
    path = reverse("web:sign_in_once", args=[link.secret])
    made = Invitation(
        username=link.user.get_username(),
        url=request.build_absolute_uri(path),
        expires_at=link.expires_at,
    )
    return answer_with(made, status, {"Cache-Control": "no-store"})
