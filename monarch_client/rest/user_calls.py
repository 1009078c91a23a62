"""The endpoints about users and their sessions, for administrators of the installation."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from monarch_client import wire
from monarch_client.rest.connection import Connection
from monarch_client.rest.decoding import decode, decode_page


class UserCalls:
    """A part of `PortalClient`. A user name `me` means the caller in calls about sessions."""

    connection: Connection

    def users(self, *, q: str = "", state: str = "all", cursor: str = "") -> wire.page.Page[Any]:
        """List users by name; `state` is all, active or disabled."""
        params = {"q": q, "state": state, "cursor": cursor}
        answer = self.connection.request("GET", "/users", params=params)
        return decode_page(wire.users.User, answer)

    def user(self, username: str) -> wire.users.User:
        """Return one user."""
        return decode(wire.users.User, self.connection.request("GET", _user(username)))

    def invite_user(self, username: str, **options: Any) -> wire.users.Invitation:
        """Create a user and return their sign-in link. ConflictError: the name is taken.

        `options`: project, role, hours.
        """
        body = {"username": username, **options}
        answer = self.connection.request("POST", "/users", json=body)
        return decode(wire.users.Invitation, answer)

    def change_user(self, username: str, **change: bool) -> wire.users.User:
        """Set `is_active` or `is_admin`. ConflictError for the last administrator."""
        answer = self.connection.request("PATCH", _user(username), repeatable=True, json=change)
        return decode(wire.users.User, answer)

    def link_user(self, username: str, *, hours: int) -> wire.users.Invitation:
        """Create a link that signs a user in once; earlier links no longer work."""
        path, body = f"{_user(username)}/actions/link", {"hours": hours}
        return decode(wire.users.Invitation, self.connection.request("POST", path, json=body))

    def user_sessions(self, username: str) -> list[wire.users.Session]:
        """List the browsers in which a user is signed in."""
        answer = self.connection.request("GET", f"{_user(username)}/sessions")
        return decode_page(wire.users.Session, answer).results

    def end_sessions(self, username: str, session_id: str | None = None) -> None:
        """End one session of a user, or all of them."""
        below = "" if session_id is None else f"/{quote(session_id, safe='')}"
        self.connection.request("DELETE", f"{_user(username)}/sessions{below}")


def _user(username: str) -> str:
    return f"/users/{quote(username, safe='')}"
