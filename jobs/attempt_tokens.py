"""The tokens of an attempt: its runner's, which sends frames, and its driver's, for child jobs.

The keys of its certificate authority and of its split lines come from here, too.

They are derived, not stored: a launch that is repeated after a crash carries the same ones, and a
copy of the database is not enough to forge one.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

from django.conf import settings

from jobs.models.api_token import token_digest
from monarch_client.runner.delivery.portal_proof import DRIVER_TOKEN_PREFIX

ATTEMPT_TOKEN_PREFIX = "mpa_"  # noqa: S105 - the public prefix by which scanners know our tokens
# More digits than this do not fit the database's 64 bits.
_ID_DIGITS = 18


def attempt_token(job_id: int, number: int) -> str:
    """Compute the runner's token: HMAC-SHA-256 of the attempt's identity with the secret key."""
    return ATTEMPT_TOKEN_PREFIX + _mac(f"attempt-token:{job_id}:{number}").hex()


def attempt_token_digest(job_id: int, number: int) -> str:
    """Return the digest under which the runner's token is stored."""
    return token_digest(attempt_token(job_id, number))


def driver_token(attempt_id: int, job_id: int, number: int) -> str:
    """Compute the token of the attempt's programs, which begins with the id of the attempt."""
    mac = _mac(f"driver-token:{attempt_id}:{job_id}:{number}")
    code = base64.urlsafe_b64encode(mac).decode().rstrip("=")
    return f"{DRIVER_TOKEN_PREFIX}{attempt_id}_{code}"


def authority_seed(job_id: int, number: int) -> bytes:
    """Compute the seed of the attempt's certificate authority.

    A child that serves the attempt's driver gets the same, and so belongs to its trust domain.
    """
    return _mac(f"authority:{job_id}:{number}")


def open_lines_key(job_id: int, number: int) -> bytes:
    """Compute the key that seals ends of the attempt's split lines, which may be of a secret."""
    return _mac(f"open-lines:{job_id}:{number}")


def attempt_id_in(token: str) -> int | None:
    """Return the attempt id in a driver's token or its public name; None without one."""
    number, _, code = token.removeprefix(DRIVER_TOKEN_PREFIX).partition("_")
    is_one = code and number.isascii() and number.isdecimal() and len(number) <= _ID_DIGITS
    return int(number) if is_one else None


def _mac(message: str) -> bytes:
    return hmac.new(settings.SECRET_KEY.encode(), message.encode(), hashlib.sha256).digest()
