"""Users of the installation, the links that invite them, and their sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from monarch_client.wire.projects import Role
from monarch_client.wire.values import Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRole:
    """A project of a user, and their role in it."""

    project: str
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user of the installation."""

    username: str
    is_active: Annotated[bool, Meta(description="Whether the user may sign in.")]
    is_admin: Annotated[bool, Meta(description="Administers the whole installation.")]
    has_password: bool
    created_at: Moment
    last_sign_in_at: Moment | None
    link_expires_at: Annotated[
        Moment | None, Meta(description="Expiry of an unused sign-in link; null: there is none.")
    ]
    sessions: Annotated[int, Meta(description="Number of browsers that are signed in.")]
    projects: list[ProjectRole]


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """A link that signs a user in once. It is shown this once."""

    username: str
    url: str
    expires_at: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One browser in which a user is signed in."""

    id: str
    signed_in_at: Annotated[
        Moment | None, Meta(description="Null for sessions of an earlier release.")
    ]
    expires_at: Moment
    address: Annotated[str, Meta(description="The client's address at the sign-in.")]
    browser: Annotated[str, Meta(description="The browser's own name of itself.")]
    is_current: Annotated[bool, Meta(description="Whether this request belongs to it.")] = False
