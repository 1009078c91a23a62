"""Programs that other interpreters run by their path: the runner imports one, for its rules."""

from __future__ import annotations

import pkgutil

__all__ = ["read"]


def read(name: str) -> bytes:
    """Return the content of a file of this package, from the bundle or the source tree."""
    content = pkgutil.get_data(__name__, name)
    if content is None:
        raise FileNotFoundError(name)
    return content
