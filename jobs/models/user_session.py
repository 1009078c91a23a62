"""Sessions of browsers, by user: Django's own engine with columns that a list of sessions needs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models

from jobs.models.api_token import token_digest

# The key of a session's data that describes its sign-in: `at`, `address` and `browser`.
SIGN_IN = "sign_in"


class UserSession(AbstractBaseSession):
    """The session of one browser. Its key is a secret: a client that has it is signed in."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True)
    signed_in_at = models.DateTimeField(null=True)
    address = models.CharField(max_length=60, blank=True)
    browser = models.CharField(max_length=200, blank=True)

    @property
    def public_id(self) -> str:
        """A name of the session that may be shown: it does not lead to the key."""
        return self.digest[:16]

    @property
    def digest(self) -> str:
        """The digest of its key, by which a gateway session names it."""
        return token_digest(self.session_key)

    @classmethod
    def get_session_store_class(cls) -> type[SessionStore]:
        """Return the engine that reads these rows."""
        return SessionStore


class SessionStore(DatabaseStore):
    """Django's sessions in the database, as rows of `UserSession`."""

    @classmethod
    def get_model_class(cls) -> type[UserSession]:
        """Return the class of the rows."""
        return UserSession

    def create_model_instance(self, data: dict[str, Any]) -> Any:
        """Return the row of a session, with its user and the description of its sign-in."""
        row: Any = super().create_model_instance(data)
        row.user_id = int(data[SESSION_KEY]) if SESSION_KEY in data else None
        sign_in = data.get(SIGN_IN, {})
        row.signed_in_at = datetime.fromisoformat(sign_in["at"]) if sign_in else None
        row.address = sign_in.get("address", "")[:60]
        row.browser = sign_in.get("browser", "")[:200]
        return row


def browser_of(session: SessionBase) -> str:
    """Return the digest of the key of a request's session; "" before it is stored."""
    return token_digest(session.session_key) if session.session_key else ""
