"""`/proof`: a client finds out whether this is its portal, before it sends its token."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.api.base.answers import answer_with
from jobs.api.base.authentication import CHALLENGE
from jobs.api.base.schema import problems
from jobs.api.schema_views import PublicView
from jobs.live.tries import begin_try, of_tokens_from
from jobs.readers.portal_proof import proof_for
from monarch_client.wire.account import Proof


class ProofView(PublicView):
    """`/proof`."""

    def get_authenticate_header(self, request: Request) -> str:
        """Return the challenge that makes DRF answer 401 rather than 403."""
        return CHALLENGE

    @extend_schema(
        operation_id="proof",
        parameters=[
            OpenApiParameter("holder", OpenApiTypes.STR, description="The token's public name."),
            OpenApiParameter("nonce", OpenApiTypes.STR, description="32 random hex digits."),
        ],
        responses={200: Proof, **problems(401)},
    )
    def get(self, request: Request) -> Response:
        """Prove that this is the portal that a token is for.

        Clients ask over plain http, once a connection, before they send the token. The key of the
        MAC is the token's SHA-256 in hex, of which the first 16 digits are its public name. Before
        those of a job's program comes `mpj_NUMBER_`, with the number of its attempt.
        """
        holder, nonce = (request.query_params.get(name, "") for name in ("holder", "nonce"))
        address = str(request.META.get("SERVER_NAME", ""))
        proof = proof_for(holder, nonce, address=address, port=_port_of(request))
        if proof is None:
            begin_try(of_tokens_from(request.META.get("REMOTE_ADDR") or ""))
            raise AuthenticationFailed("This portal knows no token of that name.")
        return answer_with(proof, headers={"Cache-Control": "no-store"})


def _port_of(request: Request) -> int:
    """Return the port of the socket itself, not of a proxy's headers; 0 if it has none."""
    port = str(request.META.get("SERVER_PORT", ""))
    return int(port) if port.isdecimal() else 0
