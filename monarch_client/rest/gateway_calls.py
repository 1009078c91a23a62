"""The endpoints about gateway sessions: programs that are attached to a job's workers."""

from __future__ import annotations

from typing import Any

from monarch_client import wire
from monarch_client.rest.connection import Connection
from monarch_client.rest.decoding import decode, decode_page


class GatewayCalls:
    """A part of `PortalClient`."""

    connection: Connection

    def gateway_sessions(self, project: str, job_id: int) -> list[wire.gateway.GatewaySession]:
        """List the sessions of a job: current ones, then those that have ended."""
        answer = self.connection.request("GET", _sessions(project, job_id))
        return decode_page(wire.gateway.GatewaySession, answer).results

    def open_gateway_session(
        self, project: str, job_id: int, stated: dict[str, Any] | None = None
    ) -> wire.gateway.GatewayTicket:
        """Open a session in a running job; `stated` has the fields of its kind and purpose.

        ConflictError: it does not run, or has no gateway.
        """
        answer = self.connection.request("POST", _sessions(project, job_id), json=stated or {})
        return decode(wire.gateway.GatewayTicket, answer)

    def end_gateway_session(self, project: str, job_id: int, session_id: int) -> None:
        """End a session; its program gets a SessionLostError."""
        self.connection.request("DELETE", f"{_sessions(project, job_id)}/{session_id}")


def _sessions(project: str, job_id: int) -> str:
    return f"/projects/{project}/jobs/{job_id}/gateway-sessions"
