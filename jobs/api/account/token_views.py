"""The caller's own API tokens."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions.accounts.tokens import create_token, revoke_token
from jobs.api.base.answers import answer_with, page_with
from jobs.api.base.inputs import TokenBody
from jobs.api.base.portal_view import PortalView
from jobs.api.base.schema import problems
from jobs.permissions import project_for
from jobs.readers.extended import extended
from jobs.readers.token_list import token_list
from monarch_client.wire.account import NewToken, Token
from monarch_client.wire.page import Page


class TokenListView(PortalView):
    """`/tokens`."""

    tag = "account"

    @extend_schema(operation_id="token_list", responses={200: Page[Token], **problems(401)})
    def get(self, request: Request) -> Response:
        """List your tokens that are still valid, newest first."""
        return page_with(token_list(self.actor))

    @extend_schema(
        operation_id="token_create",
        request=TokenBody,
        responses={201: NewToken, **problems(400, 401, 403, 404)},
    )
    def post(self, request: Request) -> Response:
        """Make a token. Its secret is in this answer and nowhere else."""
        body = self.parsed(TokenBody, request.data)
        slug = body.pop("project")
        project = project_for(self.actor, slug) if slug else None
        token, secret = create_token(self.actor, project=project, **body)
        view = next(row for row in token_list(self.actor) if row.id == token.pk)
        made = extended(NewToken, view, token=secret)
        return answer_with(made, 201, {"Cache-Control": "no-store"})


class TokenDetailView(PortalView):
    """`/tokens/{id}`."""

    tag = "account"

    @extend_schema(operation_id="token_revoke", responses={204: None, **problems(401, 404)})
    def delete(self, request: Request, token_id: int) -> Response:
        """End a token at once."""
        revoke_token(self.actor, token_id)
        return Response(status=204)
