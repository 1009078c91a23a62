"""A check of a request's caller by its headers alone, before its body is read.

What the caller may do is decided by the view: this only keeps strangers from sending much.
"""

from __future__ import annotations

from importlib import import_module
from io import BytesIO
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.core.handlers.asgi import ASGIRequest
from rest_framework.exceptions import APIException

from jobs.api.base.authentication import authenticate
from jobs.attempt_tokens import ATTEMPT_TOKEN_PREFIX
from jobs.errors import AttemptClosedError, PermissionDeniedError, PortalError
from jobs.live.looking import in_thread
from jobs.models import Attempt
from jobs.models.api_token import token_digest

_API = "/api/"
_ATTEMPTS = "/api/v1/attempts/"
_UPLOADS = "/uploads"
_CODE = "/code"


def is_upload(path: str) -> bool:
    """Whether folders are sent there, which may be larger than all else."""
    is_code = path.startswith(_ATTEMPTS) and path.endswith(_CODE)
    return is_code or (path.startswith(_API) and path.endswith(_UPLOADS))


async def is_known(scope: dict[str, Any]) -> bool:
    """Whether the token or the session of an ASGI request is one of ours.

    PortalError when it is, and certainly may not send anything there.
    """
    return await in_thread(_is_known, ASGIRequest(scope, BytesIO()))


def _is_known(request: ASGIRequest) -> bool:
    _, _, secret = request.headers.get("Authorization", "").strip().partition(" ")
    if secret.strip().startswith(ATTEMPT_TOKEN_PREFIX):
        return request.path_info.startswith(_ATTEMPTS) and _is_of_an_attempt(secret.strip())
    sessions = import_module(settings.SESSION_ENGINE)
    request.session = sessions.SessionStore(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
    request.user = get_user(request)
    try:
        token = authenticate(request, drivers_too=True).token
    except (APIException, PortalError):
        return False
    if is_upload(request.path_info) and token is not None and token.read_only:
        raise PermissionDeniedError("This token may only read. Use one that may write.")
    return True


def _is_of_an_attempt(secret: str) -> bool:
    attempts = Attempt.objects.select_related("cluster")
    attempt = attempts.filter(token_digest=token_digest(secret)).first()
    if attempt is not None and not attempt.takes_frames:
        raise AttemptClosedError
    return attempt is not None
