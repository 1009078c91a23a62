"""Seals for secrets in the database: encrypted and signed, with keys that rotate.

The keys are the setting MPORTAL_SECRET_KEYS, newest first: the first one seals, every one opens.
What is sealed names what it is about, so that a row's content can't be moved to another row.
"""

from __future__ import annotations

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from jobs.errors import SecretsUnavailableError

_AFTER_ABOUT = b"\0"


def new_key() -> str:
    """Generate a key for MPORTAL_SECRET_KEYS."""
    return Fernet.generate_key().decode()


def sealed(text: str, *, about: str) -> bytes:
    """Seal `text` with the newest key. SecretsUnavailableError: there is none."""
    return _keys().encrypt(about.encode() + _AFTER_ABOUT + text.encode())


def unsealed(content: bytes | memoryview, *, about: str) -> str:
    """Return the text of sealed `content`. SecretsUnavailableError: no key opens it for `about`."""
    try:
        found, _, text = _keys().decrypt(bytes(content)).partition(_AFTER_ABOUT)
    except InvalidToken:
        found, text = b"", b""
    if found != about.encode():
        raise SecretsUnavailableError(
            "No key in MPORTAL_SECRET_KEYS opens this secret: it was sealed with one that is "
            "missing now. Give that key back, or set the secret anew."
        )
    return text.decode()


def resealed(content: bytes | memoryview) -> bytes:
    """Seal `content` again with the newest key. SecretsUnavailableError: no key opens it."""
    try:
        return _keys().rotate(bytes(content))
    except InvalidToken:
        raise SecretsUnavailableError("No key in MPORTAL_SECRET_KEYS opens this secret.") from None


def _keys() -> MultiFernet:
    keys = settings.MPORTAL_SECRET_KEYS
    if not keys:
        raise SecretsUnavailableError
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except ValueError:
        # Its message would be about one of the keys.
        raise SecretsUnavailableError(
            "MPORTAL_SECRET_KEYS holds something that is no key. `manage.py rotate_secrets "
            "--new-key` makes one."
        ) from None
