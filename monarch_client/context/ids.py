"""Ids of objects: random for each process, counted within it."""

from __future__ import annotations

import itertools
import os

ID_BYTES = 16
_RANDOM_BYTES = 10
_counter = itertools.count()
_prefix = os.urandom(_RANDOM_BYTES)


def new_id() -> bytes:
    """Return an id that no other object has."""
    return _prefix + next(_counter).to_bytes(ID_BYTES - _RANDOM_BYTES, "big")


def holder_of(executor: int) -> int:
    """Return the holder of what an executor has stored and the driver has not taken over.

    It is no process id: what an executor reported before its end is the driver's.
    """
    return -executor


def _renew() -> None:
    global _prefix  # noqa: PLW0603 - a forked process must not repeat the ids of its parent
    _prefix = os.urandom(_RANDOM_BYTES)


os.register_at_fork(after_in_child=_renew)
