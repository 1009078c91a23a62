"""The caller of a request: a bearer token from programs, the session (with CSRF) from a browser.

Both end in an `Actor`; what it may do is for `jobs.permissions` alone.
"""

from __future__ import annotations

import hmac
from datetime import timedelta
from typing import Any

from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import APIException, AuthenticationFailed, NotAuthenticated
from rest_framework.request import Request

from jobs.attempt_tokens import attempt_id_in, driver_token
from jobs.errors import PermissionDeniedError
from jobs.ground import clock
from jobs.live.access import read_session_again
from jobs.live.tries import begin_try, of_tokens_from
from jobs.models import ApiToken, Attempt, User
from jobs.models.api_token import token_digest
from jobs.models.user_session import browser_of
from jobs.permissions import Actor
from monarch_client.runner.delivery.portal_proof import DRIVER_TOKEN_PREFIX

# How stale `last_used_at` may be: a write for every request would cost more than it is worth.
LAST_USED_PRECISION = timedelta(minutes=1)

CHALLENGE = 'Bearer realm="mportal"'
_SCHEME = "bearer"
_NOT_FOR_DRIVERS = (
    "This is the token of a job: it submits, sees and cancels its child jobs, and nothing else."
)


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer mpt_...`."""

    def authenticate(self, request: Request | HttpRequest) -> tuple[User, ApiToken] | None:
        """Return the token's user and the token; None when the request carries no token."""
        secret = _bearer(request.META.get("HTTP_AUTHORIZATION", ""))
        if secret is None:
            return None
        if secret.startswith(DRIVER_TOKEN_PREFIX):
            # The holder of such a token made a mistake, which is no attempt to guess one.
            raise AuthenticationFailed(_NOT_FOR_DRIVERS)
        token = _usable_token(secret, request.META.get("REMOTE_ADDR") or "")
        _note_use(token)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        """Return the challenge that makes DRF answer 401 rather than 403."""
        return CHALLENGE


class DriverAuthentication(BaseAuthentication):
    """`Authorization: Bearer mpj_...`: the program of a job, where child jobs are dealt with."""

    def authenticate(self, request: Request | HttpRequest) -> tuple[User, Attempt] | None:
        """Return the job's submitter and the attempt; None when the request has no such token."""
        secret = _bearer(request.META.get("HTTP_AUTHORIZATION", ""))
        if secret is None or not secret.startswith(DRIVER_TOKEN_PREFIX):
            return None
        attempt = _open_attempt(secret, request.META.get("REMOTE_ADDR") or "")
        return attempt.job.submitted_by, attempt

    def authenticate_header(self, request: Request) -> str:
        """Return the challenge that makes DRF answer 401 rather than 403."""
        return CHALLENGE


class SignInRequired(NotAuthenticated):
    """The error of a request without a user, with the challenge that DRF adds for its own views."""

    auth_header = CHALLENGE


def actor_of(request: Request) -> Actor:
    """Return the actor of a request that DRF has authenticated."""
    return _actor(request.user, request.auth, request)


def authenticate(request: HttpRequest, *, drivers_too: bool = False) -> Actor:
    """Return the actor of a GET outside DRF (the live streams). NotAuthenticated without one.

    It checks no CSRF token, so it is not for requests that change anything.
    """
    found: tuple[User, ApiToken | Attempt] | None = None
    if drivers_too:
        found = DriverAuthentication().authenticate(request)
    found = found or TokenAuthentication().authenticate(request)
    if found is not None:
        return _actor(*found, request)
    if not request.user.is_authenticated:
        raise SignInRequired
    return _actor(request.user, None, request)


def authenticate_again(request: HttpRequest, *, drivers_too: bool = False) -> Actor:
    """Authenticate a long request again, with the session and its user read from the database.

    PermissionDeniedError when the session has ended, or its user may not sign in any more.
    """
    read_session_again(request)
    try:
        return authenticate(request, drivers_too=drivers_too)
    except APIException as error:
        raise PermissionDeniedError("Sign in again.") from error


AUTHENTICATION_CLASSES = (TokenAuthentication, SessionAuthentication)
# For the few views that a job's own program may ask.
WITH_DRIVERS = (DriverAuthentication, *AUTHENTICATION_CLASSES)


def _actor(user: Any, by: Any, request: Request | HttpRequest) -> Actor:
    source = request.META.get("REMOTE_ADDR") or ""
    if isinstance(by, Attempt):
        return Actor(user=user, source=source, driver=by)
    if by is not None:
        return Actor(user=user, token=by, source=source)
    return Actor(user=user, source=source, browser=browser_of(request.session))


def _bearer(header: str) -> str | None:
    scheme, _, secret = header.strip().partition(" ")
    if scheme.lower() != _SCHEME:
        return None
    if not secret.strip() or not secret.isascii():
        raise AuthenticationFailed("The Authorization header holds no token.")
    return secret.strip()


def _usable_token(secret: str, address: str) -> ApiToken:
    tokens = ApiToken.objects.usable(clock.now()).select_related("user", "project")
    token = tokens.filter(digest=token_digest(secret)).first()
    if token is None or not token.user.is_active:
        # It guesses nothing (tokens carry 256 bits), but it may as well ask less often.
        begin_try(of_tokens_from(address))
        raise AuthenticationFailed(
            "This token is unknown, revoked or expired. Make a new one under Settings, Tokens."
        )
    return token


def _open_attempt(secret: str, address: str) -> Attempt:
    attempts = Attempt.objects.select_related("job__project", "job__submitted_by")
    attempt = attempts.filter(pk=attempt_id_in(secret) or 0).first()
    expected = driver_token(attempt.pk, attempt.job_id, attempt.number) if attempt else ""
    if attempt is None or not hmac.compare_digest(expected.encode(), secret.encode()):
        begin_try(of_tokens_from(address))
        raise AuthenticationFailed("This is no token of a job of this portal.")
    if attempt.ended_at is not None or not attempt.job.submitted_by.is_active:
        raise AuthenticationFailed("This token ended with its attempt.")
    return attempt


def _note_use(token: ApiToken) -> None:
    now = clock.now()
    if token.last_used_at is None or now - token.last_used_at > LAST_USED_PRECISION:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
