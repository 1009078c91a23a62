"""Secrets on their way through SkyPilot, which on Slurm makes them arguments of `srun`.

Every user of a node can read those, and Slurm's accounting keeps them. What is hidden here opens
with the attempt's token alone, which travels in a file of the job's user.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Mapping

_HIDDEN = "mportal-hidden:"
# Of these SkyPilot itself needs the values, such as the account of a registry.
_READ_BY_SKYPILOT = "SKYPILOT_"


def hidden(values: Mapping[str, str], token: str) -> dict[str, str]:
    """Return the values as those see them who do not know the attempt's token."""
    return {
        name: value if name.startswith(_READ_BY_SKYPILOT) else _hide(name, value, token)
        for name, value in values.items()
    }


def revealed(values: Mapping[str, str], token: str) -> dict[str, str]:
    """Return what `hidden` was given; a value that is not hidden stays as it is."""
    return {name: _reveal(name, value, token) for name, value in values.items()}


def _hide(name: str, value: str, token: str) -> str:
    return _HIDDEN + base64.b64encode(_mask(name, value.encode(), token)).decode()


def _reveal(name: str, value: str, token: str) -> str:
    if not value.startswith(_HIDDEN):
        return value
    try:
        return _mask(name, base64.b64decode(value[len(_HIDDEN) :], validate=True), token).decode()
    except (binascii.Error, UnicodeDecodeError):
        return value  # the user's own, or of another attempt


def _mask(name: str, content: bytes, token: str) -> bytes:
    """Combine it with a pad, as a node's Python has no cipher; doing so again undoes it.

    A name has one value in an attempt, so no pad hides two texts.
    """
    pad = hashlib.shake_256(f"{token}\0{name}".encode()).digest(len(content))
    return bytes(each ^ other for each, other in zip(content, pad))
