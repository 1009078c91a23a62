"""Keys of elements whose position changes while a page is open."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def element_key(names: Iterable[str]) -> str:
    """Return an element's key from the names it shows: the same key at every position."""
    return hashlib.blake2s("\n".join(names).encode(), digest_size=8).hexdigest()
