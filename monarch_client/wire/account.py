"""The caller's account, and the clouds of the installation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from monarch_client.wire.projects import Project
from monarch_client.wire.values import Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """The caller, as the portal knows them."""

    username: str
    is_admin: Annotated[bool, Meta(description="Administers the whole installation.")]
    token: Annotated[str | None, Meta(description="Name of the token in use.")] = None
    read_only: bool = False
    time_zone: Annotated[
        str, Meta(description="In which pages show times. Empty: that of the browser.")
    ] = ""
    hour_format: Annotated[
        str, Meta(description="12 or 24 hours on pages. Empty: as the browser's language has it.")
    ] = ""
    projects: list[Project]


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One of the caller's tokens, without its secret."""

    id: int
    name: str
    project: Annotated[str, Meta(description="Empty: all of the user's projects.")]
    read_only: bool
    created_at: Moment
    expires_at: Moment | None
    last_used_at: Moment | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken(Token):
    """A new token. Its secret is shown this once."""

    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudEntry:
    """One set of credentials of a cloud: whose they are, never what they are."""

    kind: str
    name: str
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudState:
    """One cloud as SkyPilot sees it."""

    name: str
    is_enabled: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The names under which credentials are listed."""

    names: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The proof, and where the portal received the request for it."""

    machine: Annotated[str, Meta(description="A name of the portal's machine and network.")]
    address: Annotated[str, Meta(description="The address that received the request.")]
    port: Annotated[int, Meta(description="The port that received the request.")]
    uid: Annotated[int, Meta(description="The user id of the portal.")]
    mac: Annotated[str, Meta(description="HMAC-SHA-256 of nonce, machine, address, port and uid.")]
