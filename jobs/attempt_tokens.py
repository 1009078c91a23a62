"""The token with which an attempt's runner signs in.

It is derived, not stored: a launch that is repeated after a crash carries the same token, and a
copy of the database lets nobody forge one.
"""

from __future__ import annotations

import hashlib
import hmac

from django.conf import settings

from jobs.models.api_token import token_digest

ATTEMPT_TOKEN_PREFIX = "mpa_"  # noqa: S105 - the public prefix by which scanners know our tokens


def attempt_token(job_id: int, number: int) -> str:
    """HMAC-SHA-256 over the attempt's identity, under the installation's secret key."""
    message = f"attempt-token:{job_id}:{number}".encode()
    mac = hmac.new(settings.SECRET_KEY.encode(), message, hashlib.sha256)
    return ATTEMPT_TOKEN_PREFIX + mac.hexdigest()


def attempt_token_digest(job_id: int, number: int) -> str:
    """What is stored of the token."""
    return token_digest(attempt_token(job_id, number))
