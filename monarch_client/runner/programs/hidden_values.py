"""Hide secrets from SkyPilot, which on Slurm passes them as arguments of `srun`.

Every user of a node can read those, and Slurm's accounting keeps them. Only the attempt's token
reveals the hidden values; it travels in a file that belongs to the job's user.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Mapping

_HIDDEN = "mportal-hidden:"
# SkyPilot itself reads variables with this prefix, such as the account of a registry.
_READ_BY_SKYPILOT = "SKYPILOT_"


def hidden(values: Mapping[str, str], token: str) -> dict[str, str]:
    """Hide the values, except those that SkyPilot itself reads; the token reveals them."""
    return {
        name: value if name.startswith(_READ_BY_SKYPILOT) else _hide(name, value, token)
        for name, value in values.items()
    }


def revealed(values: Mapping[str, str], token: str) -> dict[str, str]:
    """Reveal the values that `hidden` hid; others stay as they are."""
    return {name: _reveal(name, value, token) for name, value in values.items()}


def _hide(name: str, value: str, token: str) -> str:
    return _HIDDEN + base64.b64encode(_mask(name, value.encode(), token)).decode()


def _reveal(name: str, value: str, token: str) -> str:
    if not value.startswith(_HIDDEN):
        return value
    try:
        return _mask(name, base64.b64decode(value[len(_HIDDEN) :], validate=True), token).decode()
    except (binascii.Error, UnicodeDecodeError):
        return value  # a user's value with this prefix, or hidden by another attempt


def _mask(name: str, content: bytes, token: str) -> bytes:
    """Mask the content by XOR with a pad from the token and the name; a second call undoes it.

    A node's Python has no cipher. A name has one value in an attempt, so no pad is used twice.
    """
    pad = hashlib.shake_256(f"{token}\0{name}".encode()).digest(len(content))
    return bytes(each ^ other for each, other in zip(content, pad))
