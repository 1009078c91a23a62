"""Gateway sessions: programs outside of a job that are attached to its workers, and shells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from msgspec import Meta

from monarch_client.wire.values import CHOICES, Moment

GatewayKind: TypeAlias = Annotated[str, Meta(extra_json_schema={CHOICES: "GatewayKind"})]
GatewayState: TypeAlias = Annotated[str, Meta(extra_json_schema={CHOICES: "GatewayState"})]


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySession:
    """A session of one program, of `mportal ssh` or of `mportal sync`."""

    id: int
    attempt: Annotated[int, Meta(description="The number of the attempt that it is attached to.")]
    user: str
    source: Annotated[str, Meta(description="The network address of the request for it.")]
    kind: GatewayKind = "attach"
    purpose: Annotated[str, Meta(description="What a shell is for, as its user stated it.")] = ""
    state: GatewayState
    created_at: Moment
    seen_at: Annotated[Moment | None, Meta(description="When it was last connected.")]
    ended_at: Moment | None
    reason: Annotated[str, Meta(description="Why it has ended.")]
    bytes_up: Annotated[int, Meta(description="Bytes from the program to the workers.")]
    bytes_down: Annotated[int, Meta(description="Bytes from the workers to the program.")]
    can_end: Annotated[bool, Meta(description="Whether you may end it.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayTicket:
    """A ticket: what a program needs to connect, once."""

    id: Annotated[int, Meta(description="The id of the session.")]
    ticket: Annotated[str, Meta(description="The bearer token of the first connection.")]
    expires_in_s: int
    path: Annotated[str, Meta(description="The path of the WebSocket, below the portal's address.")]
    python: Annotated[str, Meta(description="The Python of the workers; empty while unknown.")]
    torchmonarch: Annotated[str, Meta(description="Their torchmonarch; empty while unknown.")]
