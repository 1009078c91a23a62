"""Prove to a client that this is the portal, by the digest of the client's token."""

from __future__ import annotations

import hmac
import os
import string

from jobs.attempt_tokens import attempt_id_in, driver_token
from jobs.ground import clock
from jobs.models import ApiToken, Attempt
from jobs.models.api_token import token_digest
from monarch_client.runner.delivery.portal_proof import (
    DRIVER_TOKEN_PREFIX,
    HOLDER_DIGITS,
    NONCE_DIGITS,
    Origin,
    holder_of,
    this_machine,
)
from monarch_client.wire.account import Proof

_HEX = frozenset(string.hexdigits.lower())


def proof_for(holder: str, nonce: str, *, address: str, port: int) -> Proof | None:
    """Return the proof that answers `nonce`; None if no token has this public name.

    `address` and `port` are those of the socket that received the request. Runners of ended
    attempts get a proof too: they must learn that their frames are no longer accepted.
    """
    if not _is_hex(nonce, NONCE_DIGITS):
        return None
    digest = _digest_of(holder)
    if digest is None:
        return None
    origin = Origin(this_machine(), address, port, os.geteuid())
    return Proof(**origin._asdict(), mac=origin.mac(digest, nonce))


def _digest_of(holder: str) -> str | None:
    if holder.startswith(DRIVER_TOKEN_PREFIX):
        return _digest_of_driver(holder)
    if not _is_hex(holder, HOLDER_DIGITS):
        return None
    tokens = ApiToken.objects.usable(clock.now()).filter(digest__startswith=holder)
    attempts = Attempt.objects.filter(token_digest__startswith=holder)
    return (
        tokens.values_list("digest", flat=True).first()
        or attempts.values_list("token_digest", flat=True).first()
    )


def _digest_of_driver(holder: str) -> str | None:
    attempt = Attempt.objects.filter(pk=attempt_id_in(holder) or 0).first()
    if attempt is None:
        return None
    token = driver_token(attempt.pk, attempt.job_id, attempt.number)
    is_its_name = hmac.compare_digest(holder_of(token).encode(), holder.encode())
    return token_digest(token) if is_its_name else None


def _is_hex(text: str, digits: int) -> bool:
    return len(text) == digits and _HEX.issuperset(text)
